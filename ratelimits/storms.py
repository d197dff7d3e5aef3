"""Addresses whose requests keep being refused at the second door that they pass.

The first door can't know who asks. So a caller whom the second one refuses, from what the process
knows, would cost the store a take and a give-back each time. While that goes on, the first door
lets requests of this address wait for the second one: it takes when that one has let pass, and in
any case before a view runs or an answer leaves. If the second one refuses, nothing was taken.
"""

from __future__ import annotations

import time
from threading import Lock

from .conf import conf

MOST = 10_000


class Storms:
    """The addresses, and until when it is so; bounded."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._until)

    def begin(self, address: str) -> None:
        """A request that the first door let pass, or wait, was refused without asking the store."""
        now = time.monotonic()
        with self._lock:
            self._until.pop(address, None)
            # The first ones end first.
            while self._until and (
                len(self._until) >= MOST or self._until[next(iter(self._until))] <= now
            ):
                del self._until[next(iter(self._until))]
            self._until[address] = now + conf.LOCAL_REFUSALS

    def end(self, address: str) -> None:
        with self._lock:
            self._until.pop(address, None)

    def is_on(self, address: str) -> bool:
        return self._until.get(address, 0.0) > time.monotonic()

    def forget(self) -> None:
        self._until.clear()


storms = Storms()
