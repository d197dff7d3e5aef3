"""Fixtures that start a test with a limiter that knows nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ratelimits import edits
from ratelimits.client import booking, upstreams
from ratelimits.client.allowance import allowances
from ratelimits.client.notes import forget_notes
from ratelimits.clock import microseconds
from ratelimits.hearing import hearing
from ratelimits.logs import once
from ratelimits.stores import forget_stores, get_store
from ratelimits.stores.guarded import GuardedStore
from ratelimits.stores.redis import RedisStore
from ratelimits.storms import storms
from ratelimits.telling import lately
from ratelimits.usage.asking import away
from ratelimits.usage.recorder import recorder
from tests.servers import RedisServer
from tests.settings import redis_caches

# No test may fail by a timeout, go on in memory unnoticed, read again what it kept, or find
# commands that count processes among its own.
PATIENT = {
    "STORE_TIMEOUT": 20,
    "STORE_FAILURE": "deny",
    "CATALOG_TTL": 3600,
    "LOCAL_REFUSALS": 0,
    "WORKERS": 1,
}


def forget_everything() -> None:
    edits.shared.clear()
    edits._open.clear()
    upstreams.forget_all()
    booking.forget_local()
    forget_notes()
    allowances.forget()
    once.forget()
    lately.forget()
    storms.forget()
    hearing.forget()
    forget_stores()
    # What is counted is written when a test says so, not among the commands that it looks at.
    recorder.by_itself = False
    recorder.forget()
    away.forget()


@pytest.fixture
def fresh() -> Iterator[None]:
    """No limits known, nothing counted in memory, nothing logged yet."""
    forget_everything()
    yield
    forget_everything()


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """For counts in memory time stands still, so that waits are told to the second."""
    now = microseconds()
    for module in ("memory", "gates"):
        monkeypatch.setattr(f"ratelimits.stores.{module}.microseconds", lambda: now)


def the_redis_store() -> RedisStore:
    """The store in force, without its guard."""
    guarded = get_store()
    assert isinstance(guarded, GuardedStore)
    assert isinstance(guarded.store, RedisStore)
    return guarded.store


@pytest.fixture
def on_redis(redis_server: RedisServer, settings: Any, fresh: None) -> Iterator[RedisServer]:
    """The limiter counts on an empty Redis, through django-redis."""
    settings.CACHES = redis_caches(redis_server.url)
    settings.RATELIMITS = PATIENT
    yield redis_server
    the_redis_store().close()
