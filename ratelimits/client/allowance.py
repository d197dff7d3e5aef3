"""How many calls may be repeated after faults, so that repeating does not become the fault.

A refusal needs no allowance: the gate lets nobody through before it may. Neither does a wait that
was told.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

CAPACITY = 100
COST = 5
# Upstreams and credentials that a process remembers. What was forgotten starts full.
MOST = 1000


class Allowance:
    """What this process may still repeat at one upstream with one credential."""

    __slots__ = ("_left", "_lock")

    def __init__(self) -> None:
        self._left = CAPACITY
        self._lock = Lock()

    def spend(self) -> bool:
        """Take what one repetition costs, if that is left."""
        with self._lock:
            if self._left < COST:
                return False
            self._left -= COST
            return True

    def give_back(self) -> None:
        """A call was answered well."""
        if self._left < CAPACITY:
            with self._lock:
                self._left = min(CAPACITY, self._left + 1)


class Allowances:
    """Of all upstreams and credentials that the process calls, the latest ones."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Allowance] = OrderedDict()
        self._lock = Lock()

    def of(self, slug: str, credential: str) -> Allowance:
        """`credential` is its digest."""
        with self._lock:
            found = self._kept.setdefault((slug, credential), Allowance())
            self._kept.move_to_end((slug, credential))
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
            return found

    def forget(self) -> None:
        self._kept.clear()


allowances = Allowances()
