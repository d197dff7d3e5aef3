"""Raised, lowered and replaced limits keep what was used before the edit."""

from __future__ import annotations

import pytest

from ratelimits.limiter import charge, peek, take
from ratelimits.limits import Decision
from ratelimits.models import Plan, PlanLimit, Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_redis")]


def sold(*rates: str, slug: str = "p") -> Plan:
    """A default plan with limits that are named as their rates."""
    plan, _ = Plan.objects.get_or_create(slug=slug, name=slug, is_default=slug == "p")
    for rate in rates:
        plan.limits.create(name=rate, rate=rate)
    return plan


def left(decision: Decision) -> dict[str, int]:
    return {outcome.name: outcome.remaining for outcome in decision.outcomes}


def edit(**changes: object) -> None:
    PlanLimit.objects.update(**changes)


@pytest.mark.parametrize(
    ("used", "allowed", "remaining", "retry_after"), [(1999, False, 0, 432), (199, True, 0, None)]
)
def test_case_17_lowered_below_what_was_used(
    used: int, allowed: bool, remaining: int, retry_after: int | None
) -> None:
    sold("2000/d")
    charge("acme", cost=used)
    edit(rate="200/d")
    decision = take("acme")
    assert decision.allowed is allowed
    assert decision.retry_after == retry_after
    assert left(decision) == {"2000/d": remaining}


def test_case_18_a_tighter_rate_is_added() -> None:
    plan = sold("100/h")
    take("acme", cost=10)
    plan.limits.create(name="5/m", rate="5/m")
    decision = take("acme")
    assert decision.allowed
    assert left(decision) == {"100/h": 89, "5/m": 4}


def test_case_19_raised_when_it_is_used_up() -> None:
    sold("10/h")
    assert take("acme", cost=10).allowed
    refused = [take("acme") for _ in range(5)]
    assert {decision.retry_after for decision in refused} == {360}
    edit(rate="15/h")
    decision = take("acme")
    assert decision.allowed
    assert decision.outcomes[0].limit.quota == 15
    assert left(decision) == {"10/h": 4}


def test_design_4_lowered_to_four_waits_for_the_new_rate() -> None:
    sold("10/h")
    take("acme", cost=10)
    edit(rate="4/h")
    assert left(peek("acme")) == {"10/h": 0}
    assert take("acme").retry_after == 900


def test_case_23_replaced_by_another_and_back() -> None:
    plan = sold("10/s", "500/m", "10000/h")
    for _ in range(5):
        take("acme")
    plan.limits.all().delete()
    plan.limits.create(name="300/d", rate="300/d")
    decision = take("acme")
    assert decision.allowed
    assert left(decision) == {"300/d": 299}
    plan.limits.all().delete()
    sold("10/s", "500/m", "10000/h")
    decision = take("acme")
    assert decision.allowed
    assert left(decision)["10000/h"] in (9994, 9995)


def test_a_move_to_another_plan() -> None:
    """Limits of one name are one count."""
    sold("10/h").limits.update(name="n")
    big = sold("30/h", slug="big")
    big.limits.update(name="n")
    take("acme", cost=10)
    tenant = Tenant.objects.create(key="acme", plan=big)
    assert left(take("acme")) == {"n": 19}
    tenant.delete()
    assert left(peek("acme")) == {"n": 0}


def test_an_own_limit_replaces_the_plans() -> None:
    sold("10/h").limits.update(name="n")
    take("acme", cost=10)
    tenant = Tenant.objects.create(key="acme")
    tenant.limits.create(name="n", rate="12/h")
    tenant.limits.create(name="own", rate="3/h")
    assert left(take("acme")) == {"n": 1, "own": 2}
    tenant.limits.all().delete()
    assert left(peek("acme")) == {"n": 0}


@pytest.mark.parametrize("changes", [{"rate": "unlimited"}, {"mode": "off"}])
def test_a_limit_that_is_lifted(changes: dict[str, str]) -> None:
    sold("10/h", "20/h")
    take("acme", cost=10)
    PlanLimit.objects.filter(name="10/h").update(**changes)
    assert left(take("acme")) == {"20/h": 9}


def test_case_16_nothing_at_all() -> None:
    sold("10/h")
    edit(rate="0/m")
    decision = take("acme")
    assert not decision.allowed
    assert decision.retry_after is None
    assert [outcome.name for outcome in decision.violated] == ["10/h"]


def test_another_algorithm_starts_fresh() -> None:
    sold("10/h")
    take("acme", cost=10)
    edit(algorithm="sliding_log")
    assert left(take("acme")) == {"10/h": 9}


def test_another_burst_keeps_what_was_used() -> None:
    sold("10/h")
    take("acme", cost=4)
    edit(burst=20)
    assert left(peek("acme")) == {"10/h": 16}
    edit(burst=5)
    assert left(peek("acme")) == {"10/h": 1}


def test_limits_of_a_scope() -> None:
    plan = sold("10/h")
    plan.limits.create(name="search", rate="3/h", scope="search")
    assert left(take("acme")) == {"10/h": 9}
    assert left(take("acme", scope="search")) == {"10/h": 8, "search": 2}
    assert left(take("acme", scope="export")) == {"10/h": 7}
