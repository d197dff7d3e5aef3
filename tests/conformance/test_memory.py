"""The process's own memory: bounded under a flood, and exact between threads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from ratelimits.stores.memory import MemoryStore

from .examples import ALGORITHMS
from .stores import NOON, SECOND, Calls, limit


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns as often as they can, so that what is not locked is seen."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_threads_admit_exactly_what_there_is(algorithm: str) -> None:
    store, start = MemoryStore(), Barrier(16)
    rule, other = limit("1000/w", algorithm=algorithm), limit("5000/w", "other")
    subject = Calls(store).subject

    def tries(index: int) -> int:
        calls = Calls(store, rule, other, subject=subject)
        start.wait()
        return sum(calls.take(at=None).allowed for _ in range(100))

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(tries, range(16))) == 1000
    left = Calls(store, rule, other, subject=subject).peek(at=None).outcomes
    assert [outcome.remaining for outcome in left] == [0, 4000]


def test_it_stays_bounded_under_a_flood() -> None:
    store = MemoryStore(size=100)
    for _ in range(5_000):
        Calls(store, limit("10/h"), limit("5/h", "b")).take()
    # The newest caller's limits come in together; each limit has one bucket for the overflow.
    assert len(store) <= 100 + 2 + 2


def test_full_buckets_are_dropped_first() -> None:
    store = MemoryStore(size=10)
    used = [Calls(store, limit("10/h")) for _ in range(5)]
    for calls in used:
        calls.take(10)
    for _ in range(5):
        Calls(store, limit("10/s")).take()
    newcomer = Calls(store, limit("10/h"))
    newcomer.take(10, at=NOON + SECOND)
    assert len(store) == 6
    assert not newcomer.take(at=NOON + SECOND).allowed
    assert not any(calls.take(at=NOON + SECOND).allowed for calls in used)


def test_a_flood_resets_nobody() -> None:
    store = MemoryStore(size=50)
    victims = [Calls(store, limit("10/h")) for _ in range(50)]
    for calls in victims:
        calls.take(7)
    for number in range(2_000):
        Calls(store, limit("10/h")).take(at=NOON + number * 1000)
    remaining = [calls.peek(at=NOON + 2 * SECOND).outcomes[0].remaining for calls in victims]
    assert remaining == [3] * 50


def test_the_overflow_shares_one_bucket_for_each_limit() -> None:
    store = MemoryStore(size=3)
    for _ in range(3):
        Calls(store, limit("10/h")).take()
    newcomers = [Calls(store, limit("5/h", "a"), limit("9/h", "b")) for _ in range(8)]
    assert [calls.take().allowed for calls in newcomers] == [True] * 5 + [False] * 3
    another = Calls(store, limit("9/h", "b"))
    assert another.take().outcomes[0].remaining == 3


def test_room_that_was_freed_is_used_again() -> None:
    """Newcomers have buckets of their own again as soon as others are full."""
    store = MemoryStore(size=3)
    for _ in range(3):
        Calls(store, limit("1/s")).take()
    for second in range(2, 5):
        calls = Calls(store, limit("1/s"))
        assert calls.take(at=NOON + second * SECOND).allowed
        assert not calls.take(at=NOON + second * SECOND).allowed
    assert len(store) <= 3


def test_peeks_keep_nothing() -> None:
    store = MemoryStore()
    for _ in range(10):
        Calls(store, limit("10/h")).peek()
    assert len(store) == 0


def test_reset_forgets_one_caller_only() -> None:
    store = MemoryStore()
    one, two = (Calls(store, *(limit("5/h", a, algorithm=a) for a in ALGORITHMS)) for _ in "ab")
    assert one.take(5).allowed
    assert two.take(5).allowed
    store.reset(one.group)
    assert one.take(5).allowed
    assert not two.take().allowed
