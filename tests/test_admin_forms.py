from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from ratelimits.models import Plan, ServiceLimit, Tenant, TenantLimit
from ratelimits.rates import Rate
from tests.admin_site import (
    PLANS,
    SERVICE,
    TENANTS,
    limit_data,
    limit_errors,
    plan_data,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin_site")]

BAD_TEXTS = ["ten/m", "10/", "/m", "10/0s", "-1/m", "10/m/m", "1e9/s"]


@pytest.fixture
def plan() -> Plan:
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    plan.limits.create(name="requests", rate="100/m", burst=20)
    return plan


def service_data(**values: Any) -> dict[str, Any]:
    return {"name": "all", "rate": "5000/s", "per": "everyone", "mode": "enforce", **values}


def test_a_plan_and_its_limits(admin_client: Client) -> None:
    data = plan_data({"name": "requests", "rate": "100 per hour"}, {"name": "daily", "rate": "9/d"})
    response = admin_client.post(PLANS + "add/", data)
    assert response.status_code == 302
    limits = Plan.objects.get(slug="pro").limits.order_by("pk")
    assert [(row.name, row.rate) for row in limits] == [
        ("requests", Rate(100, 3600)),
        ("daily", Rate(9, 86400)),
    ]


def test_a_limit_edited_in_its_row(admin_client: Client, plan: Plan) -> None:
    limit = plan.limits.get()
    row = {"id": limit.pk, "plan": plan.pk, "name": "requests", "rate": "7/s", "burst": ""}
    data = plan_data(row, initial=1, name="Free", slug="free", is_default="on")
    response = admin_client.post(f"{PLANS}{plan.pk}/change/", data)
    assert response.status_code == 302
    limit.refresh_from_db()
    assert (limit.rate, limit.burst) == (Rate(7, 1), None)


def test_rows_without_changes_are_not_saved(admin_client: Client, plan: Plan) -> None:
    limit = plan.limits.get()
    row = {"id": limit.pk, "plan": plan.pk, "name": "requests", "rate": "100/m", "burst": "20"}
    data = plan_data(row, initial=1, name="Free", slug="free", is_default="on")
    admin_client.post(f"{PLANS}{plan.pk}/change/", data)
    assert LogEntry.objects.get().get_change_message() == "No fields changed."


def test_a_tenant_and_its_limits(admin_client: Client, plan: Plan) -> None:
    limit = {
        "rate": "5/s",
        "reason": "contract",
        "expires_at_0": "2030-01-01",
        "expires_at_1": "12:00",
    }
    data = {"key": "acme", "plan": plan.pk, **limit_data(limit)}
    assert admin_client.post(TENANTS + "add/", data).status_code == 302
    saved = TenantLimit.objects.get()
    assert (saved.tenant.key, saved.rate, saved.reason) == ("acme", Rate(5, 1), "contract")
    assert saved.expires_at is not None and saved.expires_at.year == 2030


def test_a_service_limit(admin_client: Client) -> None:
    assert admin_client.post(SERVICE + "add/", service_data(burst=9000)).status_code == 302
    assert ServiceLimit.objects.get().describe() == "5000 requests per second, burst 9000"


def test_a_copy_of_a_plan(admin_client: Client, plan: Plan) -> None:
    limit = plan.limits.get()
    row = {"id": limit.pk, "plan": plan.pk, "name": "requests", "rate": "100/m", "burst": "20"}
    data = plan_data(row, initial=1, _saveasnew="Save as new")
    assert admin_client.post(f"{PLANS}{plan.pk}/change/", data).status_code == 302
    copy = Plan.objects.get(slug="pro").limits.get()
    assert (copy.name, copy.rate, copy.burst) == ("requests", Rate(100, 60), 20)
    assert plan.limits.get() == limit


@pytest.mark.parametrize("text", [*BAD_TEXTS, ""])
def test_bad_rates_in_a_plan(admin_client: Client, text: str) -> None:
    response = admin_client.post(PLANS + "add/", plan_data({"rate": text}))
    assert response.status_code == 200
    (errors,) = limit_errors(response)
    assert list(errors) == ["rate"]
    assert not text or f'"{text}"' in errors["rate"][0]
    assert not Plan.objects.exists()


@pytest.mark.parametrize("text", [*BAD_TEXTS, ""])
def test_bad_rates_of_a_tenant_and_the_service(admin_client: Client, text: str) -> None:
    data = {"key": "acme", **limit_data({"rate": text})}
    assert list(limit_errors(admin_client.post(TENANTS + "add/", data))[0]) == ["rate"]
    form = admin_client.post(SERVICE + "add/", service_data(rate=text)).context["adminform"].form
    assert list(form.errors) == ["rate"]
    assert not Tenant.objects.exists() and not ServiceLimit.objects.exists()


@pytest.mark.parametrize(
    ("limit", "field", "says"),
    [
        ({"rate": "100/month"}, "rate", "100/30d"),
        ({"rate": "10001/d", "algorithm": "sliding_log"}, "rate", "10000"),
        ({"rate": "10/s", "burst": "5", "algorithm": "fixed_window"}, "burst", "token bucket"),
        ({"rate": "1/d", "burst": "1000"}, "burst", "366 days"),
        ({"rate": "10/s", "burst": "0"}, "burst", "1"),
        ({"rate": "10/s", "mode": "perhaps"}, "mode", "perhaps"),
        ({"rate": "10/s", "name": ""}, "name", "required"),
    ],
)
def test_errors_stand_beside_the_field(
    admin_client: Client, limit: dict[str, str], field: str, says: str
) -> None:
    response = admin_client.post(PLANS + "add/", plan_data(limit))
    (errors,) = limit_errors(response)
    assert list(errors) == [field]
    assert says in errors[field][0]
    cell = rf'<td class="field-{field}">\s*<ul class="errorlist"'
    assert re.search(cell, response.content.decode())


def test_two_limits_of_one_name(admin_client: Client) -> None:
    response = admin_client.post(PLANS + "add/", plan_data({"rate": "1/s"}, {"rate": "1/m"}))
    assert response.status_code == 200
    assert "duplicate" in response.content.decode()


@pytest.mark.parametrize("mark", ["is_default", "is_anonymous"])
def test_a_second_default_plan(admin_client: Client, plan: Plan, mark: str) -> None:
    Plan.objects.update(**{mark: True})
    response = admin_client.post(PLANS + "add/", {**plan_data(), mark: "on"})
    assert list(response.context["adminform"].form.errors) == [mark]
