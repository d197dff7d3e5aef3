from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ratelimits.stores.base import Store
from ratelimits.stores.redis import RedisStore
from tests.fresh import fresh, on_redis  # noqa: F401
from tests.servers import RedisServer

from .stores import REAL, STORES, close, make_store, redis_store


def lend(name: str, start_server: Any) -> Iterator[Store]:
    store = make_store(name, start_server)
    yield store
    close(store)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, start_server: Any) -> Iterator[Store]:
    """The test runs once with each store, the pure functions included."""
    yield from lend(request.param, start_server)


@pytest.fixture(params=REAL)
def real_store(request: pytest.FixtureRequest, start_server: Any) -> Iterator[Store]:
    """Each store that a project can have."""
    yield from lend(request.param, start_server)


@pytest.fixture
def redis_only(redis_server: RedisServer) -> Iterator[RedisStore]:
    """Redis, empty; the server itself is `redis_server`."""
    store = redis_store(redis_server.url)
    yield store
    close(store)


@pytest.fixture
def memory_and_redis(start_server: Any) -> Iterator[dict[str, Store]]:
    """The stores with arithmetic of their own, for examples by the hundred."""
    stores = {name: make_store(name, start_server) for name in ("pure", "memory", "django-redis")}
    yield stores
    close(stores["django-redis"])
