from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from ratelimits.models import Plan, PlanLimit, ServiceLimit, Tenant, TenantLimit
from tests.admin_site import (
    PLANS,
    SERVICE,
    TENANTS,
    allow,
    plan_data,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin_site")]


@pytest.fixture
def plan() -> Plan:
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    plan.limits.create(name="requests", rate="100/m", burst=20)
    return plan


@pytest.fixture
def tenant(plan: Plan) -> Tenant:
    return Tenant.objects.create(key="acme", name="Acme", plan=plan)


@pytest.mark.parametrize("page", [PLANS, TENANTS, SERVICE])
def test_pages_of_lists_and_new_rows(admin_client: Client, tenant: Tenant, page: str) -> None:
    ServiceLimit.objects.create(name="all", rate="5000/s")
    for url in (page, page + "?q=a", page + "add/"):
        assert admin_client.get(url).status_code == 200


def test_pages_of_rows(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="requests", rate="200/m")
    service = ServiceLimit.objects.create(name="all", rate="5000/s")
    rows = [(PLANS, tenant.plan_id), (TENANTS, tenant.pk), (SERVICE, service.pk)]
    for page, pk in rows:
        for view in ("change", "delete", "history"):
            assert admin_client.get(f"{page}{pk}/{view}/").status_code == 200


def test_lists_describe_rates(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="search", rate="10/5m")
    ServiceLimit.objects.create(name="all", rate="5000/s", burst=9000)
    expected = {
        PLANS: "requests: 100 requests per minute, burst 20",
        TENANTS: "search: 10 requests per 5 minutes",
        SERVICE: "5000 requests per second, burst 9000",
    }
    for page, text in expected.items():
        assert text in admin_client.get(page).content.decode()


def test_lists_survive_bad_rows(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="search", rate="1/s")
    ServiceLimit.objects.create(name="all", rate="1/s")
    for model in (PlanLimit, TenantLimit, ServiceLimit):
        model.objects.update(rate="<b>ten</b>")
    for page in (PLANS, TENANTS, SERVICE):
        html = admin_client.get(page).content.decode()
        assert "not a rate: &lt;b&gt;ten&lt;/b&gt;" in html
    assert admin_client.get(f"{PLANS}{tenant.plan_id}/change/").status_code == 200


def test_names_are_escaped(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="<script>x", rate="1/s")
    assert "<script>x" not in admin_client.get(TENANTS).content.decode()


def test_plans_count_their_tenants(admin_client: Client, tenant: Tenant) -> None:
    Tenant.objects.create(key="bakery", plan=tenant.plan)
    Plan.objects.get().limits.create(name="daily", rate="1000/d")
    html = admin_client.get(PLANS).content.decode()
    link = f'<a href="{TENANTS}?plan__id__exact={tenant.plan_id}">2</a>'
    assert link in html
    assert (
        "acme" in admin_client.get(f"{TENANTS}?plan__id__exact={tenant.plan_id}").content.decode()
    )


@pytest.mark.parametrize("page", [PLANS, TENANTS])
def test_long_lists_need_no_more_queries(
    admin_client: Client, django_assert_max_num_queries: Any, page: str
) -> None:
    for number in range(20):
        plan = Plan.objects.create(slug=f"p{number}", name=f"P{number}")
        plan.limits.create(name="n", rate="1/s")
        tenant = Tenant.objects.create(key=f"t{number}", plan=plan)
        tenant.limits.create(name="n", rate="2/s")
    admin_client.get(page)
    with django_assert_max_num_queries(9):
        admin_client.get(page)


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("?own=yes", {"acme"}),
        ("?own=no", {"bakery"}),
        ("?q=Acme", {"acme"}),
        ("", {"acme", "bakery"}),
    ],
)
def test_tenants_are_found(admin_client: Client, tenant: Tenant, query: str, keys: Any) -> None:
    Tenant.objects.create(key="bakery")
    tenant.limits.create(name="a", rate="1/s")
    tenant.limits.create(name="b", rate="1/s")
    found = admin_client.get(TENANTS + query).context["cl"].result_list
    assert sorted(row.key for row in found) == sorted(keys)


@pytest.mark.parametrize("query", ["limits__algorithm=token_bucket", "is_default__exact=1"])
def test_plans_are_filtered(admin_client: Client, plan: Plan, query: str) -> None:
    plan.limits.create(name="daily", rate="1000/d")
    Plan.objects.create(slug="none", name="None")
    found = admin_client.get(f"{PLANS}?{query}").context["cl"].result_list
    assert [row.slug for row in found] == ["free"]


def test_plans_can_be_searched_for_in_the_tenants_form(admin_client: Client, plan: Plan) -> None:
    where = {"app_label": "ratelimits", "model_name": "tenant", "field_name": "plan", "term": "fr"}
    answer = admin_client.get("/admin/autocomplete/", where).json()
    assert answer["results"] == [{"id": str(plan.pk), "text": "Free"}]


def test_nothing_is_inline(admin_client: Client, tenant: Tenant) -> None:
    """A strict Content-Security-Policy would blank out inline styles and scripts."""
    tenant.limits.create(name="n", rate="1/s")
    pages = [PLANS, TENANTS, f"{PLANS}{tenant.plan_id}/change/", f"{TENANTS}{tenant.pk}/change/"]
    for page in pages:
        html = admin_client.get(page).content.decode()
        assert not re.search(r"<[^>]+\s(style|on\w+)=", html)
        assert not re.search(r"<script(?![^>]*\s(src|type=\"application/json\"))", html)


def test_the_mark_moves_at_once(admin_client: Client, plan: Plan) -> None:
    other = Plan.objects.create(slug="pro", name="Pro")
    data = {"action": "make_default", "_selected_action": [other.pk]}
    assert admin_client.post(PLANS, data).status_code == 302
    assert Plan.objects.get(is_default=True) == other
    assert LogEntry.objects.count() == 2


def test_one_plan_at_most_is_made_default(admin_client: Client, plan: Plan) -> None:
    other = Plan.objects.create(slug="pro", name="Pro")
    data = {"action": "make_default", "_selected_action": [other.pk, plan.pk]}
    response = admin_client.post(PLANS, data, follow=True)
    assert "Select one plan" in response.content.decode()
    assert Plan.objects.get(is_default=True) == plan


def test_a_plan_in_use_is_not_deleted(admin_client: Client, tenant: Tenant) -> None:
    response = admin_client.post(f"{PLANS}{tenant.plan_id}/delete/", {"post": "yes"})
    assert "is in use, so it can't be deleted" in response.content.decode()
    assert Plan.objects.exists()


@pytest.mark.parametrize("page", [PLANS, TENANTS, SERVICE])
def test_staff_without_permissions_see_nothing(staff: Client, page: str) -> None:
    assert staff.get(page).status_code == 403
    assert staff.get(page + "add/").status_code == 403
    assert staff.post(page + "add/", {}).status_code == 403


def test_staff_may_look_without_editing(staff: Client, tenant: Tenant) -> None:
    allow("view_plan", "view_planlimit")
    page = f"{PLANS}{tenant.plan_id}/change/"
    html = staff.get(page).content.decode()
    assert "100/m" in html and 'name="limits-0-rate"' not in html
    assert staff.post(page, plan_data()).status_code == 403
    assert "make_default" not in staff.get(PLANS).content.decode()
    assert staff.get(TENANTS).status_code == 403
    data = {"action": "make_default", "_selected_action": [tenant.plan_id]}
    Plan.objects.update(is_default=False)
    staff.post(PLANS, data)
    assert not Plan.objects.filter(is_default=True).exists()


def test_limits_have_permissions_of_their_own(staff: Client, plan: Plan) -> None:
    allow("view_plan", "change_plan")
    assert "100/m" not in staff.get(f"{PLANS}{plan.pk}/change/").content.decode()
    data = plan_data({"rate": "1/s"}, name="Renamed", slug="free", is_default="on")
    assert staff.post(f"{PLANS}{plan.pk}/change/", data).status_code == 302
    assert Plan.objects.get().name == "Renamed"
    assert plan.limits.count() == 1
