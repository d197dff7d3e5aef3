from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from freezegun import freeze_time

from ratelimits.admin import resets
from ratelimits.limiter import peek, take
from ratelimits.models import Plan, Tenant, TenantLimit
from tests.admin_site import TENANTS, allow
from tests.doors import for_everyone, make_plan, per_address
from tests.servers import RedisServer

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin_site")]


@pytest.fixture
def plan() -> Plan:
    return make_plan("api 100/m", "search 5/d search", slug="pro")


@pytest.fixture
def tenant(plan: Plan) -> Tenant:
    return Tenant.objects.create(key="acme", name="Acme", plan=plan)


def page(tenant: Tenant, name: str = "change") -> str:
    return f"{TENANTS}{tenant.pk}/{name}/"


def text_of(client: Client, tenant: Tenant) -> str:
    """What the page says, above its form."""
    html = client.get(page(tenant)).content.decode()
    desk = html[html.index("ratelimits-desk") : html.index('id="tenant_form"')]
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", desk))


@freeze_time("2026-03-04 12:00:00")
def test_the_limits_in_force_and_how_full_they_are(admin_client: Client, tenant: Tenant) -> None:
    for_everyone("5000/s")
    per_address("7/m")
    take("acme", cost=40)
    text = text_of(admin_client, tenant)
    assert "Nothing is refused now." in text
    assert (
        "api 100 requests per minute all requests plan pro 60 of 100 left full again in 24 s"
        in text
    )
    assert "search 5 requests per day search plan pro 5 of 5 left full" in text
    assert "5000 requests per second all requests the service, for everyone together" in text
    assert "the service, for each address counted for each address, not for a tenant" in text
    assert peek("acme").outcomes[0].remaining == 60


@freeze_time("2026-03-04 12:00:00")
def test_why_it_is_refused_and_until_when(admin_client: Client, tenant: Tenant) -> None:
    take("acme", cost=100)
    text = text_of(admin_client, tenant)
    assert (
        "Refused now by “api” (100 requests per minute): used up, the next request passes in 1 s."
    ) in text
    assert "0 of 100 left full again in 60 s" in text


def test_a_meter_has_a_name_and_its_numbers(admin_client: Client, tenant: Tenant) -> None:
    Plan.objects.get().limits.update(rate="1000000/d")
    html = admin_client.get(page(tenant)).content.decode()
    (meter, *_) = re.findall("<meter[^>]*>", html)
    assert 'max="1000000"' in meter and 'value="1000000"' in meter
    assert re.search('aria-label="api: [^"]+ left"', meter)


def test_overrides_say_what_they_do(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="api", rate="200/m", reason="contract")
    tenant.limits.create(name="extra", rate="7/m")
    text = text_of(admin_client, tenant)
    assert "its own replaces pro/api 100/m reason: contract" in text
    assert "its own adds a limit" in text


def test_an_override_whose_limit_is_gone_says_so(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="api", rate="200/m")
    Plan.objects.get().limits.filter(name="api").delete()
    assert "adds a limit: pro/api 100/m, which it replaced, is gone" in text_of(
        admin_client, tenant
    )


def test_the_default_plan_is_named_as_such(admin_client: Client, plan: Plan) -> None:
    tenant = Tenant.objects.create(key="bakery")
    assert "pro , the default plan" in text_of(admin_client, tenant)


def test_an_ending_limit_says_when_and_what_then(admin_client: Client, tenant: Tenant) -> None:
    ends = timezone.now() + timedelta(days=2, hours=20)
    tenant.limits.create(name="api", rate="200/m", expires_at=ends, reason="launch")
    text = text_of(admin_client, tenant)
    assert "expires in 3 days" in text
    assert "then 100 requests per minute again" in text
    assert "api: 200 requests per minute expires in 3 days" in text


@freeze_time("2026-03-04 12:00:00")
def test_switched_off_says_so(admin_client: Client, tenant: Tenant, settings: Any) -> None:
    settings.RATELIMITS = {"MODE": "off"}
    assert "Nothing is limited now" in text_of(admin_client, tenant)
    settings.RATELIMITS = {"MODE": "shadow"}
    take("acme", cost=100)
    text = text_of(admin_client, tenant)
    assert "all limits of the service are in shadow" in text
    assert "0 of 100 left" in text


@pytest.mark.django_db(transaction=True)
def test_the_store_away(
    admin_client: Client, on_redis: RedisServer, tenant: Tenant, settings: Any
) -> None:
    settings.RATELIMITS = {"STORE_TIMEOUT": 0.2}
    on_redis.stop()
    text = text_of(admin_client, tenant)
    assert "How full the limits are is unavailable" in text
    assert "api 100 requests per minute all requests plan pro unavailable" in text
    response = admin_client.post(page(tenant, "reset"), follow=True)
    assert "“acme” could not be reset" in response.content.decode()
    assert not LogEntry.objects.exists()


@freeze_time("2026-03-04 12:00:00")
def test_reset_asks_first_and_is_in_the_history(admin_client: Client, tenant: Tenant) -> None:
    take("acme", cost=100)
    assert page(tenant, "reset") in admin_client.get(page(tenant)).content.decode()
    confirmation = admin_client.get(page(tenant, "reset")).content.decode()
    assert "Acme (acme)" in confirmation
    assert not peek("acme").allowed
    response = admin_client.post(page(tenant, "reset"), follow=True)
    assert "What “Acme (acme)” had used is forgotten." in response.content.decode()
    assert peek("acme").allowed
    history = admin_client.get(page(tenant, "history")).content.decode()
    assert "Reset what it had used." in history


def test_nothing_is_changed_without_a_token(tenant: Tenant) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("operator"))
    for name in ("reset", "raise", "end"):
        assert client.post(page(tenant, name)).status_code == 403
    for name in ("find/", "find/add/", "find/reset/"):
        assert client.post(f"{TENANTS}{name}", {"key": "x"}).status_code == 403


def test_not_too_many_are_reset_at_once(
    admin_client: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resets, "MOST", 2)
    others = [Tenant.objects.create(key=key) for key in ("bakery", "clinic")]
    chosen = [tenant.pk, *(other.pk for other in others)]
    data = {"action": "reset_selected", "_selected_action": chosen, "post": "yes"}
    response = admin_client.post(TENANTS, data, follow=True)
    assert "Select at most 2 tenants at once." in response.content.decode()
    assert not LogEntry.objects.exists()


@freeze_time("2026-03-04 12:00:00")
def test_several_are_reset_at_once(admin_client: Client, tenant: Tenant) -> None:
    other = Tenant.objects.create(key="bakery")
    for key in ("acme", "bakery", "clinic"):
        take(key, cost=100)
    data = {"action": "reset_selected", "_selected_action": [tenant.pk, other.pk]}
    asked = admin_client.post(TENANTS, data).content.decode()
    assert "bakery" in asked and 'name="post"' in asked
    assert not peek("acme").allowed
    response = admin_client.post(TENANTS, {**data, "post": "yes"}, follow=True)
    assert "2 tenants were reset." in response.content.decode()
    assert [peek(key).allowed for key in ("acme", "bakery", "clinic")] == [True, True, False]
    assert LogEntry.objects.count() == 2


@freeze_time("2026-03-04 12:00:00")
def test_all_that_a_search_finds_are_reset(
    admin_client: Client, tenant: Tenant, settings: Any
) -> None:
    """However many: a form has at most so many fields, and theirs is confirmed by a form."""
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 9
    Tenant.objects.bulk_create(Tenant(key=f"acme:{number}") for number in range(20))
    untouched = Tenant.objects.create(key="other")
    found, chosen = f"{TENANTS}?q=acme", {"select_across": "1", "_selected_action": tenant.pk}
    asked = admin_client.post(found, {"action": "reset_selected", **chosen}).content.decode()
    posted = re.findall('<input type="hidden" name="([^"]+)" value="([^"]*)"', asked)
    response = admin_client.post(
        found, urlencode(posted), content_type="application/x-www-form-urlencoded", follow=True
    )
    assert "21 tenants were reset." in response.content.decode()
    assert LogEntry.objects.count() == 21
    assert not LogEntry.objects.filter(object_id=untouched.pk).exists()


def test_without_the_permission_nothing_is_reset(staff: Client, tenant: Tenant) -> None:
    allow("view_tenant", "change_tenant", "view_plan")
    take("acme", cost=100)
    html = staff.get(page(tenant)).content.decode()
    assert page(tenant, "reset") not in html
    assert "reset_selected" not in staff.get(TENANTS).content.decode()
    assert staff.get(page(tenant, "reset")).status_code == 403
    assert staff.post(page(tenant, "reset")).status_code == 403
    data = {"action": "reset_selected", "_selected_action": [tenant.pk], "post": "yes"}
    staff.post(TENANTS, data)
    assert not peek("acme", cost=100).allowed
    allow("reset_tenant")
    assert page(tenant, "reset") in staff.get(page(tenant)).content.decode()
    assert staff.post(page(tenant, "reset")).status_code == 302
    assert peek("acme", cost=100).allowed


@freeze_time("2026-03-04 12:00:00")
def test_who_must_not_see_tenants_resets_none(staff: Client, tenant: Tenant) -> None:
    allow("reset_tenant")
    take("acme", cost=100)
    assert staff.post(page(tenant, "reset")).status_code == 403
    assert not peek("acme").allowed


def test_who_may_only_look_sees_where_it_stands(staff: Client, tenant: Tenant) -> None:
    allow("view_tenant")
    html = staff.get(page(tenant)).content.decode()
    assert "Nothing is refused now." in html
    assert "ratelimits-raise" not in html


def test_nobody_is_reset_who_is_not_there(admin_client: Client) -> None:
    assert admin_client.get(f"{TENANTS}7/reset/").status_code == 404
    assert admin_client.post(f"{TENANTS}7/reset/").status_code == 404


def test_names_are_escaped(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="<b>x", rate="1/s", scope="<i>", reason="<u>why")
    html = admin_client.get(page(tenant)).content.decode()
    for text in ("<b>x", "<i>", "<u>why"):
        assert text not in html


def test_pages_need_few_queries(
    admin_client: Client, tenant: Tenant, django_assert_max_num_queries: Any
) -> None:
    for number in range(20):
        tenant.limits.create(name=f"n{number}", rate="1/s")
    admin_client.get(page(tenant))
    with django_assert_max_num_queries(14):
        admin_client.get(page(tenant))
    assert TenantLimit.objects.count() == 20


def test_keys_that_no_resolver_makes_are_marked(
    admin_client: Client, tenant: Tenant, settings: Any
) -> None:
    told = "No resolver of this project makes a key like this."
    assert told in text_of(admin_client, tenant)
    settings.RATELIMITS = {"TENANT": f"{__name__}.page"}
    assert told not in text_of(admin_client, tenant)
