from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from ratelimits.models import Plan, Tenant
from tests.admin_site import (
    PLANS,
    TENANTS,
    limit_data,
    plan_data,
    warnings_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin_site")]


@pytest.fixture
def plan() -> Plan:
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    plan.limits.create(name="requests", rate="100/m", burst=20)
    return plan


def saved_warnings(client: Client, *limits: dict[str, Any]) -> list[str]:
    return warnings_of(client.post(PLANS + "add/", plan_data(*limits), follow=True))


def test_nothing_to_warn_of(admin_client: Client, plan: Plan) -> None:
    limits = [{"name": "requests", "rate": "60/m"}, {"name": "daily", "rate": "1000/d"}]
    assert saved_warnings(admin_client, *limits) == []


def test_a_lone_fixed_window(admin_client: Client, plan: Plan) -> None:
    fixed = {"name": "hourly", "rate": "1000/h", "algorithm": "fixed_window"}
    (warning,) = saved_warnings(admin_client, fixed)
    assert "hourly" in warning and "2,000" in warning
    assert "only a sliding log holds its quota in any window" in warning


@pytest.mark.parametrize(
    ("bucket", "softens"),
    [
        ({"rate": "10/s"}, True),
        ({"rate": "10/s", "algorithm": "sliding_log"}, True),
        ({"rate": "10/s", "scope": "search"}, False),
        ({"rate": "10/s", "mode": "shadow"}, False),
        ({"rate": "10/s", "algorithm": "fixed_window"}, False),
        ({"rate": "10/2h"}, False),
        ({"rate": "2000/m"}, False),
        ({"rate": "unlimited"}, False),
    ],
)
def test_what_softens_a_fixed_window(
    admin_client: Client, plan: Plan, bucket: dict[str, str], softens: bool
) -> None:
    fixed = {"name": "hourly", "rate": "1000/h", "algorithm": "fixed_window"}
    warnings = saved_warnings(admin_client, fixed, bucket)
    assert any("“hourly” is a fixed window" in text for text in warnings) is not softens


def test_a_bucket_for_everything_softens_a_window_of_a_scope(
    admin_client: Client, plan: Plan
) -> None:
    fixed = {"name": "m", "rate": "900/month", "algorithm": "fixed_window", "scope": "search"}
    assert saved_warnings(admin_client, fixed, {"rate": "10/s"}) == []


def test_a_limit_that_is_off_is_no_trap(admin_client: Client, plan: Plan) -> None:
    off = {"rate": "1000/h", "algorithm": "fixed_window", "mode": "off"}
    assert saved_warnings(admin_client, off) == []


def test_what_a_log_costs(admin_client: Client, plan: Plan) -> None:
    log = {"name": "exact", "rate": "10000/d", "algorithm": "sliding_log"}
    (warning,) = saved_warnings(admin_client, log)
    assert "exact" in warning and "120,000 bytes" in warning


@pytest.mark.parametrize(
    ("first", "second", "idle"),
    [
        ({"rate": "10/s"}, {"rate": "1200/m"}, "b"),
        ({"rate": "10/s"}, {"rate": "600/m", "burst": "10"}, "b"),
        ({"rate": "10/s", "scope": "search"}, {"rate": "9/s"}, "a"),
        ({"rate": "10/s"}, {"rate": "9/s", "scope": "search"}, None),
        ({"rate": "10/s"}, {"rate": "599/m"}, None),
        ({"rate": "10/s", "mode": "off"}, {"rate": "20/s"}, None),
        ({"rate": "0/s"}, {"rate": "20/s"}, None),
    ],
)
def test_a_limit_that_is_never_the_tighter_one(
    admin_client: Client, plan: Plan, first: Any, second: Any, idle: str | None
) -> None:
    warnings = saved_warnings(admin_client, {"name": "a", **first}, {"name": "b", **second})
    assert [text.split("”")[0] for text in warnings] == ([f"“{idle}"] if idle else [])


def test_a_plan_without_limits_and_no_default(admin_client: Client) -> None:
    warnings = saved_warnings(admin_client)
    assert len(warnings) == 2
    assert "no limits" in warnings[0] and "No plan is the default" in warnings[1]


def test_warnings_are_about_what_was_saved(admin_client: Client, plan: Plan) -> None:
    """And not about the limits from before."""
    limit = plan.limits.get()
    row = {"id": limit.pk, "plan": plan.pk, "rate": "60/h", "algorithm": "fixed_window"}
    data = plan_data(row, initial=1, name="Free", slug="free", is_default="on")
    response = admin_client.post(f"{PLANS}{plan.pk}/change/", data, follow=True)
    assert len(warnings_of(response)) == 1


def tenant_warnings(client: Client, **values: Any) -> list[str]:
    limit = {"name": "hourly", "rate": "1000/h", "algorithm": "fixed_window", **values}
    data = {"key": "x", **limit_data(limit)}
    return warnings_of(client.post(TENANTS + "add/", data, follow=True))


def test_a_tenants_limit_stands_beside_those_of_its_plan(admin_client: Client, plan: Plan) -> None:
    assert tenant_warnings(admin_client) == []


def test_a_tenants_limit_replaces_its_plans(admin_client: Client, plan: Plan) -> None:
    assert len(tenant_warnings(admin_client, name="requests")) == 1


def test_an_expired_limit_is_no_trap(admin_client: Client) -> None:
    long_ago = {"expires_at_0": "2020-01-01", "expires_at_1": "00:00"}
    assert tenant_warnings(admin_client, **long_ago) == []
    Tenant.objects.all().delete()
    assert len(tenant_warnings(admin_client)) == 1
