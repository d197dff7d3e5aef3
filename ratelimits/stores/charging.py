"""Charges a store that is back for what was admitted without it: once, whatever happens."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import Lock

from ratelimits.algorithms import Operation
from ratelimits.clock import microseconds
from ratelimits.conf import conf
from ratelimits.exceptions import PartUnavailable, StoreBusy, StoreUnavailable
from ratelimits.logs import once

from .background import in_background
from .base import Store
from .levels import Levels
from .local import Bill, LocalStore
from .refusals import monotonic

# Seconds that requests still count in the process while the store is charged: by then most of
# it is, and the rest follows while they ask the store again.
CHARGE_FOR = 0.8
# Seconds between looks at what is still to be charged.
PAUSE = 0.1
# After so many of them it waits for the next time: the store is busy all along.
MOST_LOOKS = 50

# A server's own answer, in which it says that it did nothing: the names of client libraries'
# exceptions, since not all of them need be installed.
ANSWERS = ("ResponseError", "BusyLoadingError", "AuthenticationError", "MemcacheServerError")
# What is said of a connection that nothing was ever sent over.
NOT_CONNECTED = ("Connection refused", "connecting to")


class Charging:
    """Pays the bills of a LocalStore to a Store, a caller at a time.

    What may have been charged, for all that is known, counts as charged.
    """

    def __init__(
        self,
        store: Store,
        levels: Levels,
        local: Callable[[], LocalStore],
        hear: Callable[[StoreUnavailable], object],
    ) -> None:
        self._store = store
        self._levels = levels
        self._local = local
        self._hear = hear
        self._lock = Lock()
        self._process = 0
        self._wanted = False

    def begin(self) -> None:
        """Charge what can be charged soon. Raises StoreUnavailable if the store fails again."""
        self._charge(time.monotonic() + CHARGE_FOR, last=False)

    def finish(self) -> None:
        """Charge all there is, also what comes in late, and forget it."""
        if self._may_start():
            self._finish()

    def soon(self) -> None:
        """See finish(); in the background."""
        if self._may_start() and not in_background("charge", self._finish):
            self._end()

    def _may_start(self) -> bool:
        with self._lock:
            self._wanted = True
            if self._process == os.getpid():
                return False
            self._process = os.getpid()
            return True

    def _finish(self) -> None:
        try:
            for _ in range(MOST_LOOKS):
                if not self._is_wanted():
                    return
                if self._charge(float("inf"), last=True):
                    self._wanted = True
                time.sleep(PAUSE)
            self._end()
        except BaseException as error:
            self._end()
            if not isinstance(error, StoreUnavailable):
                raise
            self._hear(error)

    def _end(self) -> None:
        with self._lock:
            self._process = 0

    def _is_wanted(self) -> bool:
        with self._lock:
            wanted, self._wanted = self._wanted, False
            if not wanted:
                self._process = 0
            return wanted

    def _charge(self, until: float, last: bool) -> bool:
        """Whether to look again. Raises StoreUnavailable if the store is away."""
        local, again = self._local(), False
        for subject in local.subjects():
            if time.monotonic() > until:
                return True
            # Nobody may find paid, and forget, what somebody else may fail to pay.
            with local.paying:
                again = self._charge_one(local, subject, last) or again
        return again

    def _charge_one(self, local: LocalStore, subject: str, last: bool) -> bool:
        now = microseconds() if conf.CLOCK == "process" else None
        at = self._levels.now() if now is None else now
        bill = local.bill(subject, at, last)
        return bool(bill.costs) and self._pay(local, bill, now, at)

    def _pay(self, local: LocalStore, bill: Bill, now: int | None, at: int) -> bool:
        """Whether to look again, at whatever was counted meanwhile."""
        sent = monotonic()
        try:
            answer = self._store.run(Operation.CHARGE, bill.group, bill.costs, now)
        except Exception as error:
            if not may_be_done(error):
                local.take_back(bill, at)
            if isinstance(error, StoreBusy):
                return True
            if isinstance(error, StoreUnavailable):
                raise
            once.error(f"What was counted without the store can't be charged: {error!r}")
            return False
        self._levels.learn(bill.group, answer, sent)
        return True


def may_be_done(error: Exception) -> bool:
    """Whether the store may have done what failed: it was sent, and no answer came."""
    cause = error.__cause__
    busy = isinstance(error, StoreBusy) and not isinstance(error, PartUnavailable)
    if cause is None or busy:
        return False
    if any(text in str(cause) for text in NOT_CONNECTED):
        return False
    return not any(kind.__name__ in ANSWERS for kind in type(cause).__mro__)
