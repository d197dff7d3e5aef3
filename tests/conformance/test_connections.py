"""The connections to Redis: as many as there are callers, none where there can't be any."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ratelimits.algorithms import Operation
from ratelimits.exceptions import InvalidStore
from ratelimits.stores.redis import RedisStore
from tests.servers import RedisServer

from .stores import Calls, limit, redis_store

CALLERS = 150


def test_more_callers_at_once_than_clients_allow_by_default(redis_only: RedisStore) -> None:
    calls = Calls(redis_only, limit("100/d"))
    barrier = threading.Barrier(CALLERS)

    def one(_: int) -> bool:
        barrier.wait()
        return calls.answer(Operation.TAKE, 1, None).allowed

    with ThreadPoolExecutor(CALLERS) as pool:
        assert sum(pool.map(one, range(CALLERS))) == 100


@pytest.mark.parametrize("backend", ["django-redis", "django"])
@pytest.mark.parametrize("url", ["127.0.0.1:6379", "redis://host:port/1"])
def test_an_address_that_makes_no_client(url: str, backend: str) -> None:
    store = redis_store(url, backend)
    with pytest.raises(InvalidStore, match="make no Redis client"):
        Calls(store, limit("1/d")).take()


def take_in_threads(store: RedisStore) -> None:
    calls = Calls(store, limit("100/d"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: calls.take(at=None), range(40)))


def test_a_store_that_is_forgotten_leaves_nothing_open(redis_server: RedisServer) -> None:
    """In tests of projects each has its own, and warnings may be errors."""
    store = redis_store(redis_server.url)
    take_in_threads(store)
    # As a store and its guard know each other.
    store.before = store.check  # type: ignore[method-assign]
    del store
    gc.collect()
