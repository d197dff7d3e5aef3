"""Asks the store to book; while it is away each process has its share of every limit.

Never more than that, and never without limit: whoever pays for the vendor's refusals is not here.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from ratelimits.exceptions import RateLimitError, StoreBusy
from ratelimits.pacing.calls import Action, Call, Reply, Verdict, alone
from ratelimits.stores import get_store, patient_store
from ratelimits.stores.base import Store
from ratelimits.stores.gates import Gates, Keys, Look, MemoryGates
from ratelimits.stores.guarded import GuardedStore
from ratelimits.stores.memory import MemoryStore

T = TypeVar("T")
# How often a store is asked that is only busy, and the longest pause between, in seconds.
TRIES, PAUSE = 20, 0.02

# One for each process: a fork must not wait for a lock that its parent held.
_locals: dict[int, MemoryGates] = {}


def _local() -> MemoryGates:
    return _locals.get(os.getpid()) or _locals.setdefault(os.getpid(), MemoryGates())


def book(call: Call, keys: Keys, version: str) -> Reply:
    """Do what a call asks, in the store or else in this process."""
    store = get_store()
    if isinstance(store, GuardedStore):
        try:
            reply = _patiently(
                lambda: store.paced(lambda: patient_store().gates.run(call, keys, version))
            )
        except RateLimitError:
            # It was logged when the first call found the store away.
            pass
        else:
            _note(call, keys, reply, store)
            return reply
    return _local().run(_alone(call, store), keys, version)


def _alone(call: Call, store: Store | None) -> Call:
    """The same within what this process has of the limits while it hears of no other."""
    workers = store.processes.number if isinstance(store, GuardedStore) else 1
    asks, shares = (tuple(alone(ask, workers) for ask in of) for of in (call.asks, call.shares))
    return call._replace(asks=asks, shares=shares, told=())


def _note(call: Call, keys: Keys, reply: Reply, store: GuardedStore) -> None:
    """Remember what this process did, from which it goes on if the store goes away."""
    if isinstance(store.store, MemoryStore):
        return
    if call.action is not Action.BOOK:
        _local().run(_alone(call, store), keys, "")
    elif reply.verdict is Verdict.GO and reply.at != call.slot:
        _local().note(_alone(call, store).asks, keys, reply.at - reply.now)


def _patiently(ask: Callable[[], T]) -> T:
    """A call to somebody else's API takes longer than it takes the store to be less busy."""
    for _ in range(TRIES):
        try:
            return ask()
        except StoreBusy:
            time.sleep(random.uniform(0, PAUSE))
    return ask()


def is_at_once() -> bool:
    """Whether booking waits for nothing, so that an event loop may do it by itself."""
    store = get_store()
    return store is None or (
        isinstance(store, GuardedStore) and isinstance(store.store, MemoryStore)
    )


def is_thread_sensitive() -> bool:
    """Whether the store may only be asked in the thread that the ORM is used in."""
    store = get_store()
    return store is not None and store.thread_sensitive


def look(keys: Keys) -> Look:
    """What is booked. Raises StoreUnavailable or StoreError."""
    return _gates().look(keys)


def announce(key: str, name: str) -> None:
    """Remember that a credential is in use. If the store is away, the next call tells."""
    with suppress(RateLimitError):
        _gates().announce(key, name)


def announced(key: str) -> list[str]:
    """The credentials in use, the last one first. Raises StoreUnavailable or StoreError."""
    return _gates().announced(key)


def _gates() -> Gates:
    store = get_store()
    if not isinstance(store, GuardedStore):
        return _local()
    return patient_store().gates


def forget_local() -> None:
    """What this process booked by itself, as in tests."""
    _locals.clear()
