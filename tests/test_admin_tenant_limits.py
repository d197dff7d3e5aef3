from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from freezegun import freeze_time

from ratelimits.models import Plan, Tenant, TenantLimit
from ratelimits.raising import raised
from ratelimits.rates import Rate
from tests.admin_site import TENANTS, limit_data
from tests.doors import make_plan

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin_site")]


@pytest.fixture
def plan() -> Plan:
    return make_plan("api 100/m", slug="pro")


@pytest.fixture
def tenant(plan: Plan) -> Tenant:
    return Tenant.objects.create(key="acme", plan=plan)


def effects(client: Client, tenant: Tenant) -> list[str]:
    """What the form says of each limit that the tenant has."""
    html = client.get(f"{TENANTS}{tenant.pk}/change/").content.decode()
    found = re.findall(r'field-effect">.*?<div class="readonly">(.*?)</div>', html, re.DOTALL)
    return [text for text in found if text != "-"]


def keys(client: Client, own: str) -> list[str]:
    found = client.get(TENANTS, {"own": own}).context["cl"].result_list
    return [tenant.key for tenant in found]


def test_what_an_own_limit_does(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="api", rate="200/m")
    tenant.limits.create(name="other", rate="7/m")
    assert effects(admin_client, tenant) == ["replaces pro/api 100/m.", "adds a limit."]


def test_one_whose_plan_has_lost_its_limit(admin_client: Client, plan: Plan) -> None:
    for key, of_row in (("acme", plan), ("bakery", None)):
        tenant = Tenant.objects.create(key=key, plan=of_row)
        tenant.limits.create(name="api", rate="200/m")
        tenant.limits.create(name="added", rate="200/m")
    assert keys(admin_client, "gone") == []
    plan.limits.all().delete()
    assert keys(admin_client, "gone") == ["acme", "bakery"]
    assert effects(admin_client, tenant) == [
        "adds a limit.",
        "adds a limit: pro/api 100/m, which it replaced, is gone.",
    ]
    # Whoever saves it now means it so.
    for row in TenantLimit.objects.all():
        row.save()
    assert keys(admin_client, "gone") == []


def test_one_whose_tenant_has_another_plan_now(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="api", rate="200/m")
    other = Plan.objects.create(slug="big", name="Big")
    Tenant.objects.update(plan=other)
    assert keys(admin_client, "gone") == ["acme"]
    other.limits.create(name="api", rate="1000/m")
    assert keys(admin_client, "gone") == []
    assert effects(admin_client, tenant) == ["replaces big/api 1000/m."]


def test_a_raise_in_the_form_and_in_the_list(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="api", rate="200/m")
    with freeze_time(timezone.now()) as time:
        until = timezone.now() + timedelta(hours=3)
        raised(tenant, "api", Rate.parse("900/m"), until).save()
        told = "expires in 3 h, then 200 requests per minute again"
        assert effects(admin_client, tenant) == [f"replaces pro/api 100/m, {told}."]
        html = admin_client.get(TENANTS).content.decode()
        assert f"api: 900 requests per minute, {told}" in html
        assert keys(admin_client, "while") == ["acme"]
        assert keys(admin_client, "over") == []
        time.tick(3 * 3600 + 1)
        ended = "has ended, and is 200 requests per minute again"
        assert effects(admin_client, tenant) == [f"replaces pro/api 100/m, {ended}."]
        assert keys(admin_client, "while") == []
        assert keys(admin_client, "over") == ["acme"]


def test_one_that_has_ended(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="api", rate="9/m", expires_at=timezone.now())
    assert effects(admin_client, tenant) == ["has ended, and counts no more."]
    assert "api: 9 requests per minute, has ended" in admin_client.get(TENANTS).content.decode()


def test_a_limit_edited_in_the_form_keeps_what_it_was(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="api", rate="200/m", reason="contract")
    row = raised(tenant, "api", Rate.parse("900/m"), timezone.now() + timedelta(days=1), "launch")
    row.save()
    data = {"id": row.pk, "tenant": tenant.pk, "name": "api", "rate": "800/m"}
    posted = {"key": "acme", "plan": tenant.plan_id, **limit_data(data, initial=1)}
    ends = {"limits-0-expires_at_0": "2099-01-01", "limits-0-expires_at_1": "12:00"}
    url = f"{TENANTS}{tenant.pk}/change/"
    assert admin_client.post(url, {**posted, **ends}).status_code == 302
    row.refresh_from_db()
    assert (str(row.rate), row.rate_after, row.reason_after) == ("800/m", "200/m", "contract")


@pytest.mark.parametrize(
    ("resolver", "told"),
    [
        ("ratelimits.tenants.by_user", "As the TENANT setting gives it, such as user:7."),
        (f"{__name__}.plan", "As the TENANT setting gives it."),
    ],
)
def test_keys_as_the_resolvers_make_them(
    admin_client: Client, settings: Any, resolver: str, told: str
) -> None:
    settings.RATELIMITS = {"TENANT": resolver}
    assert told in admin_client.get(f"{TENANTS}add/").content.decode()
