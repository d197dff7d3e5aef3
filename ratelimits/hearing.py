"""Hearing that the mode was switched back, while nothing is counted and so nothing travels."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from threading import Lock

from django.core.cache.backends.db import DatabaseCache

from .catalog import Caller, plans_key
from .conf import conf
from .edits import shared
from .exceptions import CatalogUnavailable, RateLimitError
from .stores import backend_of, get_store
from .stores.background import in_background
from .stores.guarded import GuardedStore
from .stores.memory import MemoryStore

# Seconds between looks, while requests come.
EVERY = 1.0


class Hearing:
    """One look at a time, by a thread of its own. Requests only see if it is time for one."""

    def __init__(self) -> None:
        self._due = 0.0
        self._looking = Lock()
        self._process = os.getpid()

    def start_if_due(self) -> None:
        """Called by requests in the mode "off"."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + EVERY
            if self._process != os.getpid():
                # A fork has none of the threads, one of which may have been looking.
                self._looking, self._process = Lock(), os.getpid()
            if _is_of_use():
                in_background("mode", self.look)

    def look(self) -> None:
        """What the store says; and, unless MODE says that all this is not in use, the database.

        That a store is away is nobody's affair meanwhile, so that no breaker opens.
        """
        if not self._looking.acquire(blocking=False):
            return
        try:
            self._ask_store()
            if conf.MODE != "off":
                with suppress(CatalogUnavailable):
                    shared.plans()
        finally:
            self._looking.release()

    def _ask_store(self) -> None:
        store = get_store()
        if not isinstance(store, GuardedStore) or store.breaker.is_open:
            return
        with suppress(RateLimitError):
            (version,) = store.store.versions([plans_key()])
            if version:
                shared.learn(Caller(None), (version,))

    def forget(self) -> None:
        """The next request in the mode "off" looks again."""
        self._due = 0.0


hearing = Hearing()


def _is_of_use() -> bool:
    """With MODE "off" no database is asked, and a process's memory knows of no other process."""
    if conf.is_above("MODE"):
        # Whatever is heard, it stays off.
        return False
    store = get_store()
    if conf.MODE != "off":
        return True
    if not isinstance(store, GuardedStore) or isinstance(store.store, MemoryStore):
        return False
    return not isinstance(backend_of(conf.CACHE), DatabaseCache)
