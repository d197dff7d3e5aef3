"""What the processes of a hammer do: as many takes as they can."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.core.cache import cache
from django.db import connections

from ratelimits.algorithms import Operation
from ratelimits.limiter import peek, take
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.stores import get_store
from ratelimits.stores.base import Group, Slot
from tests.conformance.shared import meet


def tries(index: int, key: str, count: int) -> int:
    """How many of so many takes are allowed."""
    return sum(take(key).allowed for _ in range(count))


def tries_in_threads(index: int, key: str, threads: int, count: int) -> int:
    """See tries(); each of several threads makes as many."""

    def run(thread: int) -> int:
        try:
            return tries(thread, key, count)
        finally:
            connections.close_all()

    peek(key)
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(run, range(threads)))


def tries_with_clocks_apart(index: int, key: str, count: int, seconds: int) -> int:
    """See tries(); each process has its clock so much ahead of the one before."""
    set_clock_ahead(index * seconds)
    return tries(index, key, count)


def set_clock_ahead(seconds: int) -> None:
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + seconds * 10**9


def naive_tries(index: int, key: str, most: int, count: int) -> int:
    """How many pass a limiter that reads, adds and writes."""
    meet(index)
    admitted = 0
    for _ in range(count):
        used = cache.get(key, 0)
        if used < most:
            # A moment for the others, which on a busy machine might not get one.
            time.sleep(0.0005)
            cache.set(key, used + 1)
            admitted += 1
    return admitted


def tries_by_algorithm(index: int, algorithms: list[str], count: int) -> list[int]:
    """How many of so many takes are allowed by limits of 100, one after another."""
    return [
        len(admitted(group_of("100/w", algorithm=algorithm), 1, count)) for algorithm in algorithms
    ]


def logged(
    index: int, rate: str, burst: int, costs: list[int], seconds: float, ahead: int
) -> list[tuple[int, int]]:
    """For so many seconds: the store's time, in microseconds, and the cost of what it allowed."""
    set_clock_ahead(ahead * index)
    group, end = group_of(rate, burst=burst), time.monotonic() + seconds
    log = []
    while time.monotonic() < end:
        log += admitted(group, costs[index], 20)
    return log


def group_of(rate: str, **options: Any) -> Group:
    name = options.get("algorithm", "limit")
    return Group((Slot(Limit(name, Rate.parse(rate), **options), "everyone"),))


def admitted(group: Group, cost: int, count: int) -> list[tuple[int, int]]:
    """The times and costs of those of so many takes that are allowed."""
    store = get_store()
    assert store is not None
    answers = [store.run(Operation.TAKE, group, [cost]) for _ in range(count)]
    assert not any(answer.unavailable for answer in answers)
    return [(answer.now, cost) for answer in answers if answer.allowed]
