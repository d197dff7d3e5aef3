"""Stores as several processes share them: the settings that give them, and what is run there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.cache import cache

from ratelimits.algorithms import Operation
from ratelimits.counting import outcomes_of
from ratelimits.stores import get_store
from ratelimits.stores.base import Group, Slot, Store
from ratelimits.stores.guarded import GuardedStore
from tests.settings import database_caches, memcached_caches, redis_caches

from .stores import TIMEOUT, limit

# One of each kind that processes can share.
SHARED = ("redis", "cluster", "memcached", "postgresql", "sqlite")
# Far more patient than in production: what is asked here is whether the numbers are right.
PATIENT = {"STORE_TIMEOUT": TIMEOUT, "STORE_FAILURE": "deny", "WORKERS": 1}
# Processes that count in a naive way at once.
NAIVE_ONES = 4


def settings_for(name: str, start_server: Any, folder: Path, **database: Any) -> dict[str, Any]:
    """Settings of a project that counts in a store of SHARED."""
    settings: dict[str, Any] = {"RATELIMITS": PATIENT}
    if name in ("redis", "cluster"):
        return settings | {"CACHES": redis_caches(start_server(name).url)}
    if name == "memcached":
        return settings | {"CACHES": memcached_caches(start_server("memcached").address)}
    if name == "postgresql":
        entry = start_server("postgresql").settings()
    else:
        entry = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "db.sqlite3")}
    databases = {"default": {**entry, **database}}
    return settings | {"CACHES": database_caches(), "DATABASES": databases}


def the_store() -> Store:
    """The one that settings give, without its guard."""
    guarded = get_store()
    assert isinstance(guarded, GuardedStore)
    return guarded.store


def slots(*described: Sequence[str]) -> tuple[Slot, ...]:
    """Of (subject, rate, name, algorithm, per)."""
    return tuple(
        Slot(limit(rate, name, algorithm=algorithm, per=per), subject)
        for subject, rate, name, algorithm, per in described
    )


def hammer(index: int, tries: int, described: Sequence[Sequence[str]]) -> int:
    """Take as often as told, as fast as it goes. Returns how many were allowed."""
    store, group = the_store(), Group(slots(*described))
    costs = [1] * len(group.slots)
    return sum(store.run(Operation.TAKE, group, costs).allowed for _ in range(tries))


def log_takes(index: int, seconds: float, described: Sequence[Sequence[str]]) -> list[int]:
    """Take for so long. Returns the times of those that were allowed, by the store's clock."""
    store, group = the_store(), Group(slots(*described))
    end, times = time.monotonic() + seconds, []
    while time.monotonic() < end:
        answer = store.run(Operation.TAKE, group, [1] * len(group.slots))
        if answer.allowed:
            times.append(answer.now)
    return times


def hammer_each(index: int, described: Sequence[tuple[int, Sequence[Sequence[str]]]]) -> list[int]:
    """One after the other."""
    return [hammer(index, tries, caller) for tries, caller in described]


def alternate(index: int, tries: int, described: Sequence[Sequence[Sequence[str]]]) -> list[int]:
    """Take for several callers in turns. Returns how many were allowed for each."""
    rounds = [[hammer(index, 1, caller) for caller in described] for _ in range(tries)]
    return [sum(admitted) for admitted in zip(*rounds, strict=True)]


def remaining(index: int, described: Sequence[Sequence[Sequence[str]]]) -> list[list[int]]:
    """What is left of each limit of several callers."""
    return [_left(Group(slots(*caller))) for caller in described]


def _left(group: Group) -> list[int]:
    costs = [1] * len(group.slots)
    answer = the_store().run(Operation.PEEK, group, costs)
    outcomes = outcomes_of(Operation.PEEK, group, costs, answer)
    return [outcome.remaining for outcome in outcomes]


def meet(index: int) -> None:
    """Wait for the others: on a busy machine one may be done before the next one begins."""
    cache.set(f"here-{index}", True, 60)
    while not all(cache.get(f"here-{other}") for other in range(NAIVE_ONES)):
        time.sleep(0.001)


def get_and_set(index: int, tries: int, most: int) -> int:
    """How not to do it."""
    meet(index)
    admitted = 0
    for _ in range(tries):
        used = cache.get("used-by-set", 0)
        if used < most:
            # A moment for the others, which on a busy machine might not get one.
            time.sleep(0.0005)
            cache.set("used-by-set", used + 1, 60)
            admitted += 1
    return admitted


def add_and_incr(index: int, tries: int, most: int) -> int:
    """How not to do it where `incr` is get and set."""
    meet(index)
    admitted = 0
    for _ in range(tries):
        cache.add("used-by-incr", 0, 60)
        admitted += cache.incr("used-by-incr") <= most
    return admitted


def make_cache_table(index: int) -> None:
    from django.core.management import call_command

    call_command("createcachetable", verbosity=0)


def migrate(index: int) -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
