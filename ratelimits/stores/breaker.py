"""A circuit breaker: while a store is away nobody waits for it, and one thread looks after it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from ratelimits.aside import Aside
from ratelimits.exceptions import RateLimitError, StoreUnavailable
from ratelimits.logs import logger
from ratelimits.signals import store_down, store_up

# Seconds between probes of a store that is away.
PROBE_EVERY = 1.0


class Breaker:
    """Closed while the store answers. Opens at its first fault, until a probe succeeds."""

    def __init__(self, probe: Callable[[], None]) -> None:
        self._probe = probe
        self._lock = threading.Lock()
        self._fault: StoreUnavailable | None = None
        self._process = 0
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
            raise StoreUnavailable(str(fault))

    def trip(self, fault: StoreUnavailable) -> None:
        """The store failed: ask it no more until it answers a probe."""
        with self._lock:
            if self._fault is not None:
                return
            self._fault = fault
        logger.error("The store of the rate limits is away: %s", fault)
        self._aside.send(store_down, type(self), fault=str(fault))
        self._watch()

    def _watch(self) -> None:
        with self._lock:
            if self._process == os.getpid():
                return
            self._process = os.getpid()
        threading.Thread(target=self._until_back, name="ratelimits-probe", daemon=True).start()

    def _until_back(self) -> None:
        time.sleep(PROBE_EVERY)
        while not self._answers():
            time.sleep(PROBE_EVERY)
        with self._lock:
            self._fault, self._process = None, 0
        logger.warning("The store of the rate limits is back.")
        self._aside.send(store_up, type(self))

    def _answers(self) -> bool:
        try:
            self._probe()
        except RateLimitError:
            return False
        return True
