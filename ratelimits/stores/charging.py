"""Charges a store that is back for what was admitted without it: once, whatever happens."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from enum import IntEnum
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
# Seconds between looks at what is still to be charged; while the store is too busy for it, or a
# part of it is away, twice as many each time, and so many times as long as a look takes.
PAUSE, LONGEST_PAUSE, SPARING = 0.1, 1.0, 20


class Rest(IntEnum):
    """What a look at the bills leaves to do; the higher, the later it makes sense to look again."""

    NOTHING = 0
    WHATEVER_CAME = 1
    BUSY = 2


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

    def stop(self) -> None:
        """The store was replaced, as in tests: charge it no more."""
        self._local = lambda: LocalStore(self._levels)

    def soon(self) -> None:
        """Charge all there is, also what comes in late, and forget it; in the background."""
        with self._lock:
            self._wanted = True
            if self._process == os.getpid():
                return
            self._process = os.getpid()
        reference = weakref.ref(self)
        if not in_background("charge", lambda: _look_after(reference)):
            self._end()

    def look(self, pause: float) -> float:
        """Charge what can be charged. After how many seconds to look again, 0 for not at all."""
        with self._lock:
            if not self._wanted:
                self._process = 0
                return 0.0
            self._wanted = False
        started = time.monotonic()
        try:
            rest = self._charge(float("inf"), last=True)
        except BaseException as error:
            self._end()
            if not isinstance(error, StoreUnavailable):
                raise
            self._hear(error)
            return 0.0
        if rest:
            self._wanted = True
        if rest is not Rest.BUSY:
            return PAUSE
        return max(min(2 * pause, LONGEST_PAUSE), SPARING * (time.monotonic() - started))

    def _end(self) -> None:
        with self._lock:
            self._process = 0

    def _charge(self, until: float, last: bool) -> Rest:
        """Raises StoreUnavailable if the store is away."""
        local, rest = self._local(), Rest.NOTHING
        for subject in local.subjects():
            if time.monotonic() > until:
                return Rest.WHATEVER_CAME
            # Nobody may find paid, and forget, what somebody else may fail to pay.
            with local.paying:
                rest = max(rest, self._charge_one(local, subject, last))
        return rest

    def _charge_one(self, local: LocalStore, subject: str, last: bool) -> Rest:
        now = microseconds() if conf.CLOCK == "process" else None
        at = self._levels.now() if now is None else now
        bill = local.bill(subject, at, last)
        return self._pay(local, bill, now, at) if bill.costs else Rest.NOTHING

    def _pay(self, local: LocalStore, bill: Bill, now: int | None, at: int) -> Rest:
        sent = monotonic()
        try:
            answer = self._store.run(Operation.CHARGE, bill.group, bill.costs, now)
        except Exception as error:
            if not may_be_done(error):
                local.take_back(bill, at)
            if isinstance(error, StoreBusy):
                return Rest.BUSY
            if isinstance(error, StoreUnavailable):
                raise
            once.error(f"What was counted without the store can't be charged: {error!r}")
            return Rest.NOTHING
        self._levels.learn(bill.group, answer, sent)
        return Rest.WHATEVER_CAME


def _look_after(reference: weakref.ref[Charging]) -> None:
    """Until nothing is left to charge. A store that was replaced, as in tests, is left alone."""
    pause = PAUSE
    while pause:
        charging = reference()
        pause = charging.look(pause) if charging is not None else 0.0
        del charging
        time.sleep(pause)


def may_be_done(error: Exception) -> bool:
    """Whether the store may have done what failed: it was sent, and no answer came."""
    cause = error.__cause__
    busy = isinstance(error, StoreBusy) and not isinstance(error, PartUnavailable)
    if cause is None or busy:
        return False
    if any(text in str(cause) for text in NOT_CONNECTED):
        return False
    return not any(kind.__name__ in ANSWERS for kind in type(cause).__mro__)
