"""How often things happened in this process that are rare, for metrics."""

from __future__ import annotations

import os
from collections import Counter
from threading import Lock
from typing import Literal

# The store was away, a part of it was, one call came too late, a command was refused; or a bug.
Fault = Literal["away", "part", "busy", "refused", "bug"]
# What was read from the database.
Reload = Literal["plans", "tenant"]


class Tally:
    """Counts events by name. A fork begins anew, since its parent tells of what was before."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process = os.getpid()
        self._counts: Counter[str] = Counter()

    def note(self, name: str) -> None:
        with self._lock:
            self._begin()
            self._counts[name] += 1

    def changes(self) -> dict[str, int]:
        """What was counted since this was last asked."""
        with self._lock:
            self._begin()
            counts, self._counts = self._counts, Counter()
        return dict(counts)

    def _begin(self) -> None:
        if self._process != os.getpid():
            self._process = os.getpid()
            self._counts.clear()


# Of the store, by Fault; and of the catalog, by Reload.
faults = Tally()
reloads = Tally()
