"""One operation is one command, and the script finds its way back to a server that lost it."""

from __future__ import annotations

import pytest

from ratelimits import limiter
from ratelimits.models import Plan, ServiceLimit
from ratelimits.stores.base import Store
from ratelimits.stores.redis import RedisStore
from tests.servers import RedisServer

from .examples import ALGORITHMS
from .stores import Calls, close, left, limit, redis_store
from .watching import watch


@pytest.fixture
def plan(db: None) -> Plan:
    """Three limits for each tenant, and one of the service."""
    plan = Plan.objects.create(slug="pro", name="Pro", is_default=True)
    plan.limits.create(name="second", rate="10/s")
    plan.limits.create(name="day", rate="10000/d", algorithm="sliding_counter")
    plan.limits.create(name="month", rate="100000/month", algorithm="fixed_window")
    ServiceLimit.objects.create(name="service", rate="100000/s")
    return plan


@pytest.mark.usefixtures("plan")
def test_one_command_a_take(on_redis: RedisServer) -> None:
    """With three limits and a service limit; allowed or refused, warm or not."""
    limiter.take("another")
    with watch(on_redis) as seen:
        decisions = [limiter.take("acme", cost=cost) for cost in (6, 3, 3, 100_001)]
    assert [decision.allowed for decision in decisions] == [True, True, False, False]
    assert {len(decision.outcomes) for decision in decisions} == {4}
    assert len(seen.sent) == 4
    assert {command.split()[0] for command in seen.sent} == {"EVALSHA"}
    assert len(seen.inside) > 4


@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize(
    ("name", "options"),
    [("peek", {}), ("charge", {"cost": 3}), ("refund", {"cost": 2}), ("reset", {})],
)
def test_one_command_for_anything_else(
    name: str, options: dict[str, int], on_redis: RedisServer
) -> None:
    limiter.take("acme")
    with watch(on_redis) as seen:
        getattr(limiter, name)("acme", **options)
    assert len(seen.sent) == 1


def test_a_flushed_script_changes_nothing(
    redis_server: RedisServer, redis_only: RedisStore
) -> None:
    calls = Calls(redis_only, *(limit("10/m", a, algorithm=a) for a in ALGORITHMS))
    for remaining in (9, 8, 7):
        assert set(left(calls.take()).values()) == {remaining}
        redis_server.client().script_flush()
    with watch(redis_server) as seen:
        calls.take()
        calls.take()
    assert [command.split()[0] for command in seen.sent] == ["EVALSHA", "EVAL", "EVALSHA"]
    assert set(left(calls.peek()).values()) == {5}


@pytest.mark.usefixtures("plan")
def test_a_flushed_script_behind_the_limiter(on_redis: RedisServer) -> None:
    first = limiter.take("acme")
    on_redis.client().script_flush()
    second = limiter.take("acme")
    left = [[outcome.remaining for outcome in each.outcomes[:2]] for each in (first, second)]
    assert left == [[9_999, 99_999], [9_998, 99_998]]


def test_many_limits_are_still_one_command(redis_server: RedisServer) -> None:
    store: Store = redis_store(redis_server.url)
    calls = Calls(store, *(limit("10/m", f"{a}{n}", algorithm=a) for a in ALGORITHMS for n in "ab"))
    calls.take()
    with watch(redis_server) as seen:
        calls.take(3)
    assert len(seen.sent) == 1
    close(store)
