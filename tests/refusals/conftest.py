"""Fixtures for tests of what a process knows of empty buckets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ratelimits.stores import get_store
from ratelimits.stores.guarded import GuardedStore
from tests.fresh import the_redis_store
from tests.servers import RedisServer
from tests.settings import redis_caches


@pytest.fixture
def guarded(redis_server: RedisServer, settings: Any) -> Iterator[GuardedStore]:
    """The store in force; what it knows of empty buckets is old after a minute only."""
    settings.RATELIMITS = {"STORE_TIMEOUT": 20, "LOCAL_REFUSALS": 60, "WORKERS": 1}
    settings.CACHES = redis_caches(redis_server.url)
    store = get_store()
    assert isinstance(store, GuardedStore)
    beneath = the_redis_store()
    yield store
    beneath.close()
