from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.utils import timezone as django_timezone
from freezegun import freeze_time

from ratelimits.conf import above, conf
from ratelimits.limiter import atake, peek, take
from ratelimits.models import Tenant, TenantLimit
from ratelimits.stores import get_store
from ratelimits.storms import storms
from ratelimits.testing import frozen, override
from tests.doors import make_plan
from tests.settings import database_caches, memcached_caches, redis_caches

MOMENT = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)


@pytest.fixture(params=["memory", "redis", "memcached", "database"])
def anywhere(request: pytest.FixtureRequest, settings: Any, db: None) -> None:
    settings.RATELIMITS = {"STORE_TIMEOUT": 10, "STORE_FAILURE": "deny", "WORKERS": 1}
    if request.param == "redis":
        settings.CACHES = redis_caches(request.getfixturevalue("redis_server").url)
    elif request.param == "memcached":
        settings.CACHES = memcached_caches(request.getfixturevalue("memcached_server").address)
    elif request.param == "database":
        settings.CACHES = database_caches()


@pytest.mark.usefixtures("anywhere")
def test_every_store_counts_by_it() -> None:
    with override("1/m"), frozen(MOMENT) as clock:
        assert take("acme").allowed
        refused = take("acme")
        assert (refused.allowed, refused.retry_after) == (False, 60)
        clock.tick(timedelta(seconds=60) - timedelta(microseconds=1))
        assert not take("acme").allowed
        clock.tick(timedelta(microseconds=1))
        assert take("acme").allowed
        clock.move_to(MOMENT + timedelta(days=40))
        assert take("acme").allowed


def test_windows_end_when_it_says_so() -> None:
    with override("1/d", algorithm="fixed_window"), frozen("2026-11-30 23:59:59") as clock:
        assert [take("acme").allowed for _ in range(2)] == [True, False]
        clock.tick()
        assert take("acme").allowed


@pytest.mark.django_db
def test_own_limits_end() -> None:
    make_plan("api 1/d")
    tenant = Tenant.objects.create(key="acme")
    with frozen() as clock:
        end = django_timezone.now() + timedelta(hours=1)
        TenantLimit.objects.create(tenant=tenant, name="api", rate="9/d", expires_at=end)
        assert peek("acme").outcomes[0].remaining == 9
        clock.tick(3600)
        assert peek("acme").outcomes[0].remaining == 1


def test_by_default_now() -> None:
    before = time.time()
    with frozen():
        assert before - 1 <= time.time() <= before + 3600
        assert time.time() == time.time()


async def test_event_loops_go_on() -> None:
    with override("1/m"), frozen() as clock:
        assert (await atake("acme")).allowed
        await asyncio.wait_for(asyncio.sleep(0.01), 30)
        assert not (await atake("acme")).allowed
        clock.tick(60)
        assert (await atake("acme")).allowed


@pytest.mark.usefixtures("on_redis")
async def test_no_connection_of_an_event_loop_is_left(redis_server: Any) -> None:
    """Where one loop serves all tests, there would be one more for each."""
    with override("9/m"):
        assert (await atake("acme")).allowed
        before = len(redis_server.client().client_list())
        for _ in range(5):
            async with frozen():
                # The first one finds out, in a thread, what kind of a server it is.
                assert all([(await atake("acme")).allowed for _ in range(2)])
        assert len(redis_server.client().client_list()) <= before + 1
        assert (await atake("acme")).allowed


@frozen("2026-11-30 12:00")
def decorated() -> datetime:
    return django_timezone.now()


@frozen("2026-11-30 12:00")
async def adecorated() -> datetime:
    return django_timezone.now()


async def test_as_a_decorator() -> None:
    assert decorated() == await adecorated() == MOMENT


def test_nothing_is_left_behind() -> None:
    """Neither counts nor knowledge of a time that has not come yet."""
    with override("1/m"):
        assert take("acme").allowed
        store = get_store()
        with frozen() as clock:
            clock.tick(timedelta(days=400))
            assert [take("acme").allowed for _ in range(2)] == [True, False]
            storms.begin("192.0.2.1")
            assert get_store() is not store
        assert get_store() is store
        assert not storms.is_on("192.0.2.1")
        refused = take("acme")
        assert not refused.allowed
        assert refused.retry_after is not None
        assert refused.retry_after <= 60
    assert (above, conf.CLOCK) == ([], "store")


def test_caches_that_a_test_overrides_meanwhile(settings: Any) -> None:
    """The store behind the block is that of the settings behind it."""
    before = get_store()
    with frozen():
        settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
        assert get_store() is None
    assert get_store() is None
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    assert get_store() not in (None, before)


def test_whoever_freezes_time_otherwise() -> None:
    """On the memory of the process; elsewhere with CLOCK."""
    with override("1/m"), freeze_time(MOMENT) as clock:
        assert [take("acme").allowed for _ in range(2)] == [True, False]
        clock.tick(60)
        assert take("acme").allowed
