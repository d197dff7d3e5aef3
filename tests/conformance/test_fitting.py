"""Which store follows from the backend of the alias, and that it is used from end to end."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.cache import caches

from ratelimits.exceptions import InvalidStore
from ratelimits.limiter import atake, peek, reset, take
from ratelimits.models import Plan, StoreRow, Tenant
from ratelimits.stores import fitting
from tests.fresh import PATIENT
from tests.servers import MemcachedServer
from tests.settings import database_caches, memcached_caches, redis_caches

from .shared import the_store
from .stores import memcached_store

CORE = "django.core.cache.backends"


@pytest.mark.parametrize(
    ("entries", "name"),
    [
        (database_caches(), "DatabaseStore"),
        (memcached_caches("127.0.0.1:1"), "MemcachedStore"),
        (redis_caches("redis://127.0.0.1:1"), "RedisStore"),
        ({"default": {"BACKEND": f"{CORE}.locmem.LocMemCache"}}, "MemoryStore"),
    ],
)
def test_each_backend_has_its_store(entries: Any, name: str, settings: Any) -> None:
    """To make it needs no server."""
    settings.CACHES = entries
    assert type(fitting(caches["default"], "default", 1)).__name__ == name


def test_others_have_none(settings: Any, tmp_path: Any) -> None:
    settings.CACHES = {
        "default": {"BACKEND": f"{CORE}.filebased.FileBasedCache", "LOCATION": str(tmp_path)}
    }
    with pytest.raises(InvalidStore, match="PyMemcacheCache, DatabaseCache, or LocMemCache"):
        fitting(caches["default"], "default", 1)


def test_settings_that_can_not_work_are_told_of_without_a_server(settings: Any) -> None:
    # Not among CACHES, since Django's own client would fail at the end of each request.
    with pytest.raises(InvalidStore, match="make no memcached client"):
        memcached_store("host:port").check()
    settings.CACHES = memcached_caches("127.0.0.1:1")
    fitting(caches["default"], "default", 1).check()
    settings.CACHES = database_caches()
    store: Any = fitting(caches["default"], "default", 1)
    store.check()
    store.own.alias = "nowhere"
    with pytest.raises(InvalidStore, match='"nowhere", which DATABASES does not have'):
        store.check()


@pytest.fixture
def plan(db: None) -> Plan:
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    plan.limits.create(name="api", rate="10/h")
    return plan


def edits_and_takes() -> list[int]:
    """What remains after each of a few things, the last two by async callers."""

    def left(decision: Any) -> int:
        return int(decision.outcomes[0].remaining)

    found = [left(take("acme", cost=4))]
    Tenant.objects.create(key="acme", name="Acme").limits.create(name="api", rate="20/h")
    found += [left(take("acme")), left(peek("acme"))]
    reset("acme")
    return [*found, left(async_to_sync(atake)("acme", cost=2)), left(peek("acme"))]


def test_memcached(
    fresh: None, plan: Plan, memcached_server: MemcachedServer, settings: Any
) -> None:
    settings.CACHES = memcached_caches(memcached_server.address)
    settings.RATELIMITS = PATIENT
    assert edits_and_takes() == [6, 15, 15, 18, 18]
    the_store().servers.close()  # type: ignore[attr-defined]


def test_database(fresh: None, plan: Plan, settings: Any) -> None:
    """In a TestCase's transaction, which it goes with."""
    settings.CACHES = database_caches()
    settings.RATELIMITS = PATIENT
    assert edits_and_takes() == [6, 15, 15, 18, 18]
    assert StoreRow.objects.exists()


def test_a_test_leaves_no_counts_behind(db: None) -> None:
    """Whichever of these two tests comes first."""
    assert not StoreRow.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_database_in_a_test_without_a_transaction(fresh: None, settings: Any) -> None:
    settings.CACHES = database_caches()
    settings.RATELIMITS = PATIENT
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    plan.limits.create(name="api", rate="10/h")
    assert edits_and_takes() == [6, 15, 15, 18, 18]
    assert StoreRow.objects.exists()
