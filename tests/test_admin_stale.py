"""Two operators who have the same page open."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from ratelimits.models import Plan, Tenant, TenantLimit
from tests.admin_site import PLANS, TENANTS
from tests.doors import make_plan

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin_site")]


@pytest.fixture
def plan() -> Plan:
    plan = make_plan("api 100/m")
    plan.limits.update(mode="shadow")
    return plan


@pytest.fixture
def tenant(plan: Plan) -> Tenant:
    tenant = Tenant.objects.create(key="acme", plan=plan)
    tenant.limits.create(name="api", rate="200/m")
    return tenant


def opened(client: Client, page: str) -> dict[str, Any]:
    """What a browser would post of a page as it is now."""
    context = client.get(page).context
    formset = context["inline_admin_formsets"][0].formset
    forms = [context["adminform"].form, formset.management_form, *formset.forms]
    found = {field.html_name: field.value() for form in forms for field in form}
    return {
        name: "" if value is None else value for name, value in found.items() if value is not False
    }


def saved(client: Client, page: str, data: dict[str, Any]) -> bool:
    response = client.post(page, data)
    assert response.status_code == 302 or "Somebody else changed" in response.content.decode()
    return response.status_code == 302


def test_a_raise_is_not_undone(admin_client: Client, tenant: Tenant) -> None:
    page = f"{TENANTS}{tenant.pk}/"
    data = opened(admin_client, f"{page}change/")
    raised = {"raise-limit": "api", "raise-rate": "400/m", "raise-until": "week"}
    assert admin_client.post(f"{page}raise/", raised).status_code == 302
    assert not saved(admin_client, f"{page}change/", {**data, "notes": "phoned"})
    assert str(tenant.limits.get().rate) == "400/m"
    data = opened(admin_client, f"{page}change/")
    assert saved(admin_client, f"{page}change/", {**data, "notes": "phoned"})
    assert str(tenant.limits.get().rate) == "400/m"


def test_one_that_is_gone_is_said(admin_client: Client, tenant: Tenant) -> None:
    page = f"{TENANTS}{tenant.pk}/change/"
    data = opened(admin_client, page)
    TenantLimit.objects.all().delete()
    assert not saved(admin_client, page, data)


def test_a_limit_does_not_fall_back_into_shadow(admin_client: Client, plan: Plan) -> None:
    page = f"{PLANS}{plan.pk}/"
    data = opened(admin_client, f"{page}change/")
    limit = plan.limits.get()
    assert admin_client.post(f"{page}enforce/", {"limit": limit.pk}).status_code == 302
    assert not saved(admin_client, f"{page}change/", {**data, "description": "For all."})
    limit.refresh_from_db()
    assert limit.mode == "enforce"


def test_what_nobody_else_changed_is_saved(admin_client: Client, plan: Plan) -> None:
    page = f"{PLANS}{plan.pk}/change/"
    assert saved(admin_client, page, {**opened(admin_client, page), "limits-0-rate": "7/m"})
    assert str(plan.limits.get().rate) == "7/m"
