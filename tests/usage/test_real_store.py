"""Usage on a real server: what the process decides by itself, and while the server is away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connections

from ratelimits import limiter, usage
from ratelimits.exceptions import StoreUnavailable
from ratelimits.models import Plan
from ratelimits.stores import get_store
from ratelimits.stores.charging import may_be_done
from ratelimits.stores.database_opening import open_connection
from ratelimits.stores.guarded import GuardedStore
from ratelimits.usage import Counts
from tests.clusters import RedisCluster
from tests.conformance.watching import watch
from tests.fresh import PATIENT
from tests.servers import MemcachedServer, RedisServer
from tests.settings import memcached_caches, redis_caches
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def plan() -> Plan:
    plan = Plan.objects.create(slug="pro", name="Pro", is_default=True)
    plan.limits.create(name="api", rate="5/h")
    return plan


def test_refused_by_the_process_itself(on_redis: RedisServer, settings: Any) -> None:
    settings.RATELIMITS = {**PATIENT, "LOCAL_REFUSALS": 3600}
    limiter.take("acme")
    with watch(on_redis) as seen:
        for _ in range(19):
            limiter.take("acme")
    assert len(seen.sent) < 8
    usage.flush()
    assert usage.recent(["acme"]) == [Counts(5, 15, 0, 5, 15)]


@pytest.mark.parametrize(
    ("failure", "counts"), [("local", (5, 4)), ("allow", (9, 0)), ("deny", (2, 7))]
)
def test_while_the_server_is_away(
    failure: str, counts: tuple[int, int], on_redis: RedisServer, settings: Any
) -> None:
    settings.RATELIMITS = {**PATIENT, "STORE_TIMEOUT": 1, "STORE_FAILURE": failure}
    for _ in range(2):
        assert limiter.take("acme").allowed
    on_redis.kill()
    for _ in range(7):
        limiter.take("acme")
    with pytest.raises(StoreUnavailable):
        usage.flush()
    with pytest.raises(StoreUnavailable):
        usage.recent(["acme"])
    on_redis.restart()

    def is_written() -> bool:
        try:
            usage.flush()
        except StoreUnavailable:
            return False
        return True

    wait_until(is_written, "the store is back")
    wait_until(lambda: _read("acme") == counts, "all of it can be read")


def test_a_server_that_never_heard_of_it(on_redis: RedisServer, settings: Any) -> None:
    """A connection made anew gets no answer to its greeting, so that nothing was written."""
    settings.RATELIMITS = {**PATIENT, "STORE_TIMEOUT": 1}
    limiter.take("acme")
    usage.flush()
    on_redis.restart()
    assert limiter.take("acme").allowed
    on_redis.stop()
    try:
        with pytest.raises(StoreUnavailable):
            usage.flush()
    finally:
        on_redis.cont()
    usage.flush()
    assert _read("acme") == (1, 0)


def test_a_memcached_that_was_only_read(
    memcached_server: MemcachedServer, settings: Any, fresh: None
) -> None:
    settings.CACHES = memcached_caches(memcached_server.address)
    settings.RATELIMITS = {**PATIENT, "STORE_TIMEOUT": 1}
    assert limiter.take("acme").allowed
    memcached_server.stop()
    try:
        with pytest.raises(StoreUnavailable):
            usage.flush()
    finally:
        memcached_server.cont()
    usage.flush()
    assert _read("acme") == (1, 0)
    guarded = get_store()
    assert isinstance(guarded, GuardedStore)
    guarded.store.close()


def test_a_database_that_was_never_connected_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections.settings["default"], "NAME", str(tmp_path / "none" / "db"))
    with pytest.raises(OperationalError, match="Error connecting to") as caught:
        open_connection("default", 1.0)
    error = StoreUnavailable("away")
    error.__cause__ = caught.value
    assert not may_be_done(error)


def _read(key: str) -> tuple[int, int] | None:
    try:
        (found,) = usage.recent([key])
    except StoreUnavailable:
        return None
    return found.allowed, found.refused


def test_a_hundred_tenants_are_one_command(on_redis: RedisServer) -> None:
    for number in range(100):
        limiter.take(f"tenant {number}")
    usage.flush()
    usage.totals()
    with watch(on_redis) as seen:
        found = usage.recent([f"tenant {number}" for number in range(100)])
    assert [counts.requests for counts in found] == [1] * 100
    assert len(seen.sent) == 1


def test_no_key_names_anybody(on_redis: RedisServer) -> None:
    limiter.take("a-tenant-with-a-name")
    usage.flush()
    client = on_redis.client()
    dumped = b"".join(client.dump(key) or b"" for key in client.scan_iter())
    assert b"tenant" not in dumped
    assert all(0 < client.ttl(key) <= 74 * 3600 for key in client.scan_iter())


def test_in_a_cluster(redis_cluster: RedisCluster, settings: Any, fresh: None) -> None:
    settings.CACHES = redis_caches(redis_cluster.url)
    settings.RATELIMITS = PATIENT
    for number in range(20):
        limiter.take(f"tenant {number}")
    usage.flush()
    found = usage.recent([f"tenant {number}" for number in range(20)])
    assert [counts.requests for counts in found] == [1] * 20
    assert sum(point.total.requests for point in usage.totals().hours) == 20
