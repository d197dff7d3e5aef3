from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from freezegun import freeze_time

from ratelimits.catalog import Caller
from ratelimits.edits import shared
from ratelimits.limiter import peek, take
from ratelimits.models import Plan, Tenant, TenantLimit
from ratelimits.standing import InForce, Standing, standing_of
from tests.conformance.watching import watch
from tests.doors import for_everyone, make_plan, own_limit, per_address
from tests.fresh import PATIENT
from tests.servers import RedisServer

pytestmark = pytest.mark.django_db
ALGORITHMS = ["token_bucket", "fixed_window", "sliding_log", "sliding_counter"]


def by_name(standing: Standing) -> dict[str, InForce]:
    return {found.limit.name: found for found in standing.limits}


def kinds(standing: Standing) -> dict[str, str]:
    return {name: found.origin.kind for name, found in by_name(standing).items()}


def test_all_scopes_and_where_each_limit_comes_from() -> None:
    plan = make_plan("api 10/d", "search 5/d search", slug="pro")
    plan.limits.create(name="free", rate="unlimited")
    plan.limits.create(name="gone", rate="1/d", mode="off")
    per_address("7/m")
    for_everyone("1000/s")
    own_limit("acme", "20/d", "search")
    own_limit("acme", "3/d", "extra")
    Tenant.objects.update(plan=plan)
    standing = standing_of("acme")
    assert (standing.plan, standing.plan_is, standing.known) == ("pro", "plan", True)
    assert kinds(standing) == {
        "api": "plan",
        "search": "own",
        "free": "plan",
        "gone": "plan",
        "extra": "own",
        "address": "service",
        "everyone": "service",
    }
    found = by_name(standing)
    replaced = found["search"].origin.replaces
    assert replaced is not None and str(replaced.rate) == "5/d"
    assert found["extra"].origin.replaces is None
    counted = {name for name, each in found.items() if each.level is not None}
    assert counted == {"api", "search", "extra", "everyone"}


def test_without_a_row_it_is_the_default_plan() -> None:
    make_plan("api 10/d")
    standing = standing_of("whoever")
    assert (standing.plan, standing.plan_is) == ("free", "default")
    assert kinds(standing) == {"api": "default"}


def test_without_a_plan_there_is_no_limit() -> None:
    standing = standing_of("whoever")
    assert (standing.plan, standing.limits, standing.known) == (None, (), True)


def test_own_limits_that_have_ended_are_not_there() -> None:
    make_plan("api 10/d")
    limit = own_limit("acme", "20/d")
    ends = timezone.now() + timedelta(days=1)
    TenantLimit.objects.filter(pk=limit.pk).update(expires_at=ends)
    assert by_name(standing_of("acme"))["api"].origin.expires == ends
    TenantLimit.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert kinds(standing_of("acme")) == {"api": "default"}


def test_an_anonymous_caller_has_the_anonymous_plan() -> None:
    make_plan("api 10/d")
    anonymous = Plan.objects.create(slug="open", name="Open", is_anonymous=True)
    anonymous.limits.create(name="few", rate="2/d")
    per_address("7/m")
    standing = standing_of(Caller(None, "192.0.2.1"))
    assert (standing.plan, standing.plan_is) == ("open", "anonymous")
    assert kinds(standing) == {"few": "anonymous", "address": "service"}
    assert all(found.level for found in standing.limits)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@freeze_time("2026-03-02 12:00:00")
def test_how_full_it_is(algorithm: str) -> None:
    plan = make_plan("api 10/m")
    plan.limits.update(algorithm=algorithm)
    level = by_name(standing_of("acme"))["api"].level
    assert level is not None
    assert (level.capacity, level.left, level.full) == (10, 10, timedelta(0))
    take("acme", cost=4)
    level = by_name(standing_of("acme"))["api"].level
    assert level is not None
    full = {"token_bucket": 24, "sliding_counter": 120}.get(algorithm, 60)
    assert (level.used, level.left, level.full) == (4, 6, timedelta(seconds=full))
    assert level.next == timedelta(0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_on_redis_it_is_as_full(on_redis: RedisServer, settings: Any, algorithm: str) -> None:
    settings.RATELIMITS = {**PATIENT, "CLOCK": "process"}
    test_how_full_it_is(algorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@freeze_time("2026-03-02 12:00:00")
def test_an_empty_one_refuses_until(algorithm: str) -> None:
    plan = make_plan("api 10/m")
    plan.limits.update(algorithm=algorithm)
    take("acme", cost=10)
    (found,) = standing_of("acme").refusing
    assert found.wait == peek("acme").wait
    assert found.wait is not None


def test_a_limit_of_nothing_refuses_for_ever() -> None:
    make_plan("api 0/d")
    (found,) = standing_of("acme").refusing
    assert found.wait is None


def test_shadow_limits_have_a_level_and_refuse_nothing(settings: Any) -> None:
    plan = make_plan("api 1/d")
    plan.limits.update(mode="shadow")
    take("acme")
    (found,) = standing_of("acme").limits
    assert found.level is not None and found.level.left == 0
    assert not found.refuses
    plan.limits.update(mode="enforce")
    assert standing_of("acme").refusing
    settings.RATELIMITS = {"MODE": "shadow"}
    assert standing_of("acme").limits[0].limit.is_shadow
    assert not standing_of("acme").refusing


def test_switched_off_nothing_is_counted(settings: Any) -> None:
    make_plan("api 1/d")
    settings.RATELIMITS = {"MODE": "off"}
    standing = standing_of("acme")
    assert (standing.counted, standing.known) == (False, False)
    assert kinds(standing) == {"api": "default"}


def test_limits_of_one_name_are_told_apart() -> None:
    make_plan("everyone 3/d")
    for_everyone("9/d")
    own, service = standing_of("acme").limits
    assert own.level is not None and service.level is not None
    assert (own.level.capacity, service.level.capacity) == (3, 9)


@pytest.mark.django_db(transaction=True)
def test_one_command_and_nothing_taken(on_redis: RedisServer) -> None:
    make_plan("api 10/d", "search 5/d search")
    for_everyone("1000/d")
    take("acme", scope="search", cost=2)
    standing_of("acme")
    with watch(on_redis) as seen:
        standing = standing_of("acme")
    assert len(seen.sent) == 1
    levels = {name: found.level for name, found in by_name(standing).items()}
    assert {name: level and level.left for name, level in levels.items()} == {
        "api": 8,
        "search": 3,
        "everyone": 998,
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("failure", ["local", "allow", "deny"])
def test_the_store_away(on_redis: RedisServer, settings: Any, failure: str) -> None:
    settings.RATELIMITS = {"STORE_TIMEOUT": 0.2, "STORE_FAILURE": failure}
    make_plan("api 10/d")
    take("acme")
    on_redis.stop()
    standing = standing_of("acme")
    assert (standing.counted, standing.known) == (True, False)
    assert kinds(standing) == {"api": "default"}
    assert standing.limits[0].level is None
    assert not standing.refusing


@pytest.mark.django_db(transaction=True)
def test_an_edit_elsewhere_is_seen(on_redis: RedisServer) -> None:
    plan = make_plan("api 10/d")
    standing_of("acme")
    known = shared._plans
    plan.limits.update(rate="20/d")
    # As in a process that was told nothing.
    shared._plans = known
    level = by_name(standing_of("acme"))["api"].level
    assert level is not None and level.capacity == 20
