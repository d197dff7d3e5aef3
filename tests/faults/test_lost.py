"""Connections that lie idle and have ended, though nobody was told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ratelimits.exceptions import StoreUnavailable
from ratelimits.stores.base import Store
from tests.conformance.conftest import really_connecting
from tests.conformance.stores import (
    close,
    database_store,
    memcached_store,
    postgresql_store,
    redis_store,
)
from tests.waiting import wait_until

from .passage import passage

__all__ = ["really_connecting"]

TIMEOUT = 1.0
MANY = 4


def store_at(name: str, server: Any, port: int) -> Store:
    if name == "redis":
        store = redis_store(f"redis://127.0.0.1:{port}/0")
        store.timeout = TIMEOUT
        return store
    if name == "memcached":
        return memcached_store(f"127.0.0.1:{port}", TIMEOUT)
    close(postgresql_store(server))
    return database_store({**server.settings(), "PORT": str(port)}, TIMEOUT)


@pytest.mark.parametrize("name", ["redis", "memcached", "postgresql"])
def test_one_that_is_lost_is_lost_with_all_others(
    name: str, start_server: Any, really_connecting: Any
) -> None:
    """Or else each would cost a timeout, and each probe of the store would find one of them."""
    server = start_server(name)
    with really_connecting(), passage(server.port) as way:
        store: Any = store_at(name, server, way.port)
        try:
            store.versions(["a"])
            before = way.opened
            way.answering.clear()
            with ThreadPoolExecutor(MANY) as pool:
                asked = [pool.submit(store.versions, ["a"]) for _ in range(MANY)]
                # One of them has the connection that there was.
                wait_until(lambda: way.opened >= before + MANY - 1)
                way.answering.set()
                assert {each.result() for each in asked} == {("",)}
            way.lose()
            with pytest.raises(StoreUnavailable):
                store.versions(["a"])
            assert store.versions(["a"]) == ("",)
        finally:
            close(store)
