"""A circuit breaker: while a store is away nobody waits for it, and one thread looks after it."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable

from ratelimits.aside import Aside
from ratelimits.exceptions import StoreUnavailable
from ratelimits.logs import logger
from ratelimits.signals import store_down, store_up

# Seconds between probes of a store that is away.
PROBE_EVERY = 1.0


class Breaker:
    """Closed while the store answers. Opens at its first fault, until a probe succeeds.

    What is to be done `after` that is done by the thread that probed.
    """

    def __init__(
        self,
        probe: Callable[[], None],
        after: Callable[[], None] | None = None,
        part: str = "",
    ) -> None:
        self._probe = probe
        self._after = after
        self._part = f", its part at {part}," if part else ""
        self._lock = threading.Lock()
        # Its text alone: the error itself knows the request that met it.
        self._fault: str | None = None
        self._process = 0
        self._is_stopped = False
        self._aside = Aside()

    @property
    def is_open(self) -> bool:
        return self._fault is not None

    def check(self) -> None:
        """Raises StoreUnavailable, without any I/O, while the store is away."""
        fault = self._fault
        if fault is not None:
            if self._process != os.getpid():
                # Threads do not survive a fork.
                self._watch()
            raise StoreUnavailable(fault)

    def trip(self, fault: StoreUnavailable) -> None:
        """The store failed: ask it no more until it answers a probe."""
        with self._lock:
            if self._fault is not None:
                return
            self._fault = str(fault)
        logger.error("The store of the rate limits%s is away: %s", self._part, self._fault)
        self._aside.send(store_down, type(self), fault=str(fault))
        self._watch()

    def _watch(self) -> None:
        with self._lock:
            if self._process == os.getpid():
                return
            self._process = os.getpid()
        # A store that was replaced, as in tests, is looked after no longer.
        thread = threading.Thread(
            target=_look_after, args=(weakref.ref(self),), name="ratelimits-probe", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            # No threads left, or the interpreter ends. The next call tries again.
            self._process = 0

    def close(self) -> bool:
        """Ask the store again if it answers. Tells whether it does."""
        if not self._answers():
            return False
        with self._lock:
            self._fault, self._process = None, 0
        logger.warning("The store of the rate limits%s is back.", self._part)
        self._aside.send(store_up, type(self))
        if self._after is not None:
            self._after()
        return True

    def stop(self) -> None:
        """Look for it no longer. Whoever still asks finds it as it was."""
        self._is_stopped = True

    def look(self) -> bool:
        """Whether there is nothing left to look for."""
        return self._is_stopped or self.close()

    def _answers(self) -> bool:
        try:
            self._probe()
        except StoreUnavailable:
            return False
        except Exception:
            # It answers, so that each call finds out by itself what is wrong.
            logger.exception("A probe of the store of the rate limits failed.")
        return True


def _look_after(reference: weakref.ref[Breaker]) -> None:
    is_back = False
    while not is_back:
        time.sleep(PROBE_EVERY)
        breaker = reference()
        is_back = breaker is None or breaker.look()
        del breaker
