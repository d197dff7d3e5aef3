"""Who is on a plan, moving them to another one, and what stands in the way of deleting it."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from ratelimits.limiter import peek
from ratelimits.models import Plan, Tenant
from tests.admin_site import PLANS, TENANTS, allow

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin_site")]


@pytest.fixture
def free() -> Plan:
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    plan.limits.create(name="api", rate="10/m")
    return plan


@pytest.fixture
def pro() -> Plan:
    plan = Plan.objects.create(slug="pro", name="Pro")
    plan.limits.create(name="api", rate="100/m")
    return plan


@pytest.fixture
def tenants(free: Plan) -> list[Tenant]:
    return [Tenant.objects.create(key=key, plan=free) for key in ("acme", "bakery")]


def many(plan: Plan, number: int) -> None:
    Tenant.objects.bulk_create(Tenant(key=f"t{n:05}", plan=plan) for n in range(number))


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def page(client: Client, plan: Plan) -> str:
    return client.get(f"{PLANS}{plan.pk}/change/").content.decode()


def test_who_is_on_it(admin_client: Client, free: Plan, tenants: list[Tenant]) -> None:
    Tenant.objects.create(key="clinic")
    html = page(admin_client, free)
    assert f'<a href="{TENANTS}{tenants[0].pk}/change/">acme</a>' in html
    assert f'href="{PLANS}{free.pk}/move/"' in html
    text = text_of(html)
    assert "2 tenants are on this plan." in text
    assert "It is the default plan: 1 tenant without a plan of its own has it too" in text
    assert "Callers who are not known are counted by it too" in text
    assert "all of them" not in text


def test_labels(admin_client: Client, free: Plan, tenants: list[Tenant], settings: Any) -> None:
    settings.RATELIMITS = {"TENANT_LABEL": lambda key: (f"{key} Inc.", f"/crm/{key}")}
    for view in ("change", "delete"):
        html = admin_client.get(f"{PLANS}{free.pk}/{view}/").content.decode()
        assert '<a href="/crm/bakery">bakery Inc.</a>' in html


def test_a_plan_of_nobody(admin_client: Client, free: Plan, pro: Plan) -> None:
    html = page(admin_client, pro)
    assert "0 tenants are on this plan." in html
    assert "default plan" not in text_of(html).partition("Slug")[0]
    assert "/move/" not in html


def test_the_anonymous_plan(admin_client: Client, free: Plan, pro: Plan, settings: Any) -> None:
    Plan.objects.filter(pk=pro.pk).update(is_anonymous=True)
    settings.RATELIMITS = {"PLAN": lambda key: None}
    assert "Callers who are not known are counted by it," in page(admin_client, pro)
    html = page(admin_client, free)
    assert "Callers who are not known" not in html
    assert "The setting PLAN may put tenants on another plan" in html


def test_many_tenants(admin_client: Client, free: Plan, django_assert_max_num_queries: Any) -> None:
    many(free, 1234)
    with django_assert_max_num_queries(16):
        html = page(admin_client, free)
    assert "1,234 tenants are on this plan." in html
    assert html.count(f'<a href="{TENANTS}') < 30
    assert f'<a href="{TENANTS}?plan__id__exact={free.pk}">all of them</a>' in html


def test_names_are_escaped(admin_client: Client, free: Plan) -> None:
    Tenant.objects.create(key="<script>x", plan=free)
    for view in ("change", "move", "delete"):
        html = admin_client.get(f"{PLANS}{free.pk}/{view}/").content.decode()
        assert "<script>x" not in html
        assert "&lt;script&gt;x" in html


def test_selected_tenants_move(
    admin_client: Client, pro: Plan, tenants: list[Tenant], django_capture_on_commit_callbacks: Any
) -> None:
    clinic = Tenant.objects.create(key="clinic")
    selected = {"action": "move_selected", "_selected_action": [tenants[0].pk, clinic.pk]}
    asked = admin_client.post(TENANTS, selected)
    text = text_of(asked.content.decode())
    assert "2 tenants get other limits" in text and "acme" in text and "clinic" in text
    assert not Tenant.objects.filter(plan=pro).exists()
    # Nowhere is no plan.
    assert (
        "This field is required."
        in admin_client.post(TENANTS, {**selected, "post": "yes"}).content.decode()
    )
    assert peek("acme").outcomes[0].limit.quota == 10
    with django_capture_on_commit_callbacks(execute=True):
        done = admin_client.post(TENANTS, {**selected, "post": "yes", "plan": pro.pk}, follow=True)
    assert "2 tenants moved to the plan “Pro”." in done.content.decode()
    assert sorted(pro.tenants.values_list("key", flat=True)) == ["acme", "clinic"]
    assert {entry.object_repr: entry.get_change_message() for entry in LogEntry.objects.all()} == {
        "acme": "Moved from “Free” to “Pro”.",
        "clinic": "Moved from “the default plan” to “Pro”.",
    }
    assert peek("acme").outcomes[0].limit.quota == 100


def test_all_of_a_search_move(admin_client: Client, free: Plan, pro: Plan) -> None:
    """More than a page shows, and no others."""
    many(free, 250)
    Tenant.objects.create(key="acme", plan=free)
    url = f"{TENANTS}?q=t0"
    first = Tenant.objects.get(key="t00000").pk
    selected = {"action": "move_selected", "select_across": "1", "_selected_action": [first]}
    asked = admin_client.post(url, selected).content.decode()
    assert "250 tenants get other limits" in asked and "and 200 more" in asked
    assert '<input type="hidden" name="select_across" value="1">' in asked
    done = admin_client.post(url, {**selected, "post": "yes", "plan": pro.pk}, follow=True)
    assert "250 tenants moved to the plan “Pro”." in done.content.decode()
    assert free.tenants.get().key == "acme"


def test_who_is_there_already_stays_out_of_it(admin_client: Client, pro: Plan) -> None:
    acme = Tenant.objects.create(key="acme", plan=pro)
    data = {"action": "move_selected", "_selected_action": [acme.pk], "post": "1", "plan": pro.pk}
    done = admin_client.post(TENANTS, data, follow=True)
    assert "0 tenants moved" in done.content.decode()
    assert not LogEntry.objects.exists()


def test_all_of_a_plan_move(
    admin_client: Client, free: Plan, pro: Plan, tenants: list[Tenant]
) -> None:
    many(free, 1500)
    url = f"{PLANS}{free.pk}/move/"
    asked = admin_client.get(url).content.decode()
    assert "1502 tenants get other limits" in asked
    assert f'<option value="{pro.pk}">Pro</option>' in asked
    assert ">Free</option>" not in asked
    assert admin_client.post(url, {"plan": free.pk}).status_code == 200
    done = admin_client.post(url, {"plan": pro.pk}, follow=True)
    assert "1,502 tenants moved to the plan “Pro”." in done.content.decode()
    assert (free.tenants.count(), pro.tenants.count()) == (0, 1502)
    assert LogEntry.objects.count() == 1503
    history = admin_client.get(f"{PLANS}{free.pk}/history/").content.decode()
    assert "Moved 1502 tenants to “Pro”." in history


def test_a_plan_in_use_is_not_deleted(
    admin_client: Client, free: Plan, tenants: list[Tenant], django_assert_max_num_queries: Any
) -> None:
    many(free, 1500)
    with django_assert_max_num_queries(16):
        html = admin_client.get(f"{PLANS}{free.pk}/delete/").content.decode()
    text = text_of(html)
    assert "The plan “Free” is in use, so it can't be deleted. On it are:" in text
    assert f'<a href="{TENANTS}{tenants[0].pk}/change/">acme</a>' in html
    assert "and 1,482 more on “Free”" in text
    assert "Move them to another plan" in text
    admin_client.post(f"{PLANS}{free.pk}/delete/", {"post": "yes"})
    assert Plan.objects.filter(pk=free.pk).exists()


def test_selected_plans_are_not_deleted(
    admin_client: Client, free: Plan, pro: Plan, tenants: list[Tenant]
) -> None:
    data = {"action": "delete_selected", "_selected_action": [free.pk, pro.pk], "post": "yes"}
    assert ">acme</a>" in admin_client.post(PLANS, data).content.decode()
    assert Plan.objects.count() == 2


def test_others_are_deleted(admin_client: Client, pro: Plan) -> None:
    html = admin_client.get(f"{PLANS}{pro.pk}/delete/").content.decode()
    assert "api: 100 requests per minute" in html
    assert admin_client.post(f"{PLANS}{pro.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Plan.objects.exists()


def test_permissions(staff: Client, free: Plan, pro: Plan, tenants: list[Tenant]) -> None:
    allow("view_plan", "delete_plan", "delete_planlimit")
    move, delete = f"{PLANS}{free.pk}/move/", f"{PLANS}{free.pk}/delete/"
    html = page(staff, free)
    assert "2 tenants are on this plan." in html
    assert "acme" not in html and "/move/" not in html
    deleting = staff.get(delete).content.decode()
    assert "2 tenants" in deleting and "acme" not in deleting and "/move/" not in deleting
    assert staff.get(move).status_code == staff.post(move, {"plan": pro.pk}).status_code == 403
    allow("view_tenant")
    assert "acme" in page(staff, free)
    assert "move_selected" not in staff.get(TENANTS).content.decode()
    assert staff.post(move, {"plan": pro.pk}).status_code == 403
    allow("change_tenant")
    assert staff.post(move, {"plan": pro.pk}).status_code == 302
    assert pro.tenants.count() == 2
