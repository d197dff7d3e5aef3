from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from ratelimits.stores.base import Store
from ratelimits.stores.redis import RedisStore
from tests.fresh import fresh, on_redis  # noqa: F401
from tests.servers import RedisServer

from .stores import REAL, STORES, close, make_store, redis_store

# Whose counts are in bytes that the package itself packs.
PACKED = ("memcached", "postgresql", "sqlite")


@pytest.fixture(scope="session")
def really_connecting(django_db_blocker: DjangoDbBlocker) -> Callable[[], Any]:
    """A context in which stores connect to databases as they do in production."""

    @contextmanager
    def context() -> Iterator[None]:
        with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
            patch.setattr("ratelimits.stores.database_connections.in_tests", lambda: False)
            yield

    return context


@pytest.fixture
def lent(start_server: Any, really_connecting: Any) -> Iterator[Callable[[str], Store]]:
    """Makes stores by their names, and closes them."""
    with really_connecting(), ExitStack() as stack:

        def lend(name: str) -> Store:
            store = make_store(name, start_server)
            stack.callback(close, store)
            return store

        yield lend


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, lent: Callable[[str], Store]) -> Store:
    """The test runs once with each store, the pure functions included."""
    return lent(request.param)


@pytest.fixture(params=REAL)
def real_store(request: pytest.FixtureRequest, lent: Callable[[str], Store]) -> Store:
    """Each store that a project can have."""
    return lent(request.param)


@pytest.fixture(params=PACKED)
def packed_store(request: pytest.FixtureRequest, lent: Callable[[str], Store]) -> Store:
    """Each store that reads the values of its callers and writes them back."""
    return lent(request.param)


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


@pytest.fixture
def all_kinds(lent: Callable[[str], Store]) -> dict[str, Store]:
    """One store for each way of keeping states, besides."""
    return {name: lent(name) for name in ("pure", "memory", "django-redis", *PACKED)}
