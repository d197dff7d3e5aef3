"""A new limit counts what it would have refused, until one button has it refuse."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from ratelimits import usage
from ratelimits.exceptions import StoreUnavailable
from ratelimits.limiter import take
from ratelimits.models import Plan, PlanLimit, ServiceLimit, Tenant
from ratelimits.stores import get_store
from ratelimits.stores.guarded import GuardedStore
from tests.admin_site import PLANS, SERVICE, allow

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.admin_site"),
    pytest.mark.usefixtures("fresh"),
]


@pytest.fixture
def plan() -> Plan:
    plan = Plan.objects.create(slug="pro", name="Pro", is_default=True)
    plan.limits.create(name="old", rate="1000/h")
    plan.limits.create(name="new", rate="2/h", mode="shadow")
    return plan


@pytest.fixture
def service() -> ServiceLimit:
    return ServiceLimit.objects.create(name="all", rate="2/h", mode="shadow")


def page(plan: Plan) -> str:
    return f"{PLANS}{plan.pk}/change/"


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_from_shadow_to_enforcing(admin_client: Client, plan: Plan) -> None:
    tenant = Tenant.objects.create(key="acme", name="Acme")
    assert all(take("acme").allowed for _ in range(7))
    assert all(take("without a row").allowed for _ in range(3))
    usage.flush()
    html = text(admin_client.get(page(plan)))
    assert "It would have refused 6 requests in the last day, 6 of them in the last hour." in html
    assert f'<a href="/admin/ratelimits/tenant/{tenant.pk}/change/">Acme (acme)</a>: 5' in html
    assert "<li>without a row: 1</li>" in html
    new = plan.limits.get(name="new")
    response = admin_client.post(f"{PLANS}{plan.pk}/enforce/", {"limit": new.pk}, follow=True)
    assert "“new” enforces from now on." in text(response)
    assert "In shadow" not in text(response)
    assert not take("acme").allowed
    entry = LogEntry.objects.get()
    assert (
        entry.get_change_message() == "Changed mode for limit of a plan “new: 2 requests per hour”."
    )


def test_a_limit_of_the_service(admin_client: Client, plan: Plan, service: ServiceLimit) -> None:
    assert all(take("acme").allowed for _ in range(3))
    usage.flush()
    html = text(admin_client.get(f"{SERVICE}{service.pk}/change/"))
    assert "It would have refused 1 request in the last day, 1 of it in the last hour." in html
    url = f"{SERVICE}{service.pk}/enforce/"
    admin_client.post(url, {"limit": service.pk})
    assert ServiceLimit.objects.get().mode == "enforce"
    assert LogEntry.objects.get().get_change_message() == "Changed mode."
    # Nothing to do.
    admin_client.post(url, {"limit": service.pk})
    assert LogEntry.objects.count() == 1


def test_who_may_not(staff: Client, plan: Plan, service: ServiceLimit) -> None:
    assert all(take("without a row").allowed for _ in range(3))
    usage.flush()
    new = plan.limits.get(name="new")
    urls = {f"{PLANS}{plan.pk}/enforce/": new.pk, f"{SERVICE}{service.pk}/enforce/": service.pk}
    allow("view_plan", "view_servicelimit", "change_plan", "view_planlimit")
    for url, pk in urls.items():
        assert staff.post(url, {"limit": pk}).status_code == 403
        assert staff.get(url).status_code == 405
    assert "Enforce" not in text(staff.get(page(plan)))
    assert "without a row" not in text(staff.get(page(plan)))
    assert set(PlanLimit.objects.values_list("mode", flat=True)) == {"enforce", "shadow"}
    allow("change_planlimit", "change_servicelimit")
    assert "Enforce" in text(staff.get(page(plan)))
    for url, pk in urls.items():
        assert staff.post(url, {"limit": pk}).status_code == 302


@pytest.mark.parametrize("limit", ["", "x", "999999"])
def test_no_other_limit(admin_client: Client, plan: Plan, limit: str) -> None:
    other = Plan.objects.create(slug="other", name="Other").limits.create(name="n", rate="1/h")
    for chosen in (limit, other.pk):
        url = f"{PLANS}{plan.pk}/enforce/"
        assert admin_client.post(url, {"limit": chosen}).status_code == 404


def test_nothing_in_shadow_is_not_told(admin_client: Client, plan: Plan) -> None:
    PlanLimit.objects.update(mode="enforce")
    assert "In shadow" not in text(admin_client.get(page(plan)))


def test_names_are_escaped(admin_client: Client, plan: Plan) -> None:
    plan.limits.filter(name="new").update(name="<script>new")
    Tenant.objects.create(key="acme", name="<script>acme")
    for key in ("acme", "<script>key"):
        for _ in range(3):
            take(key)
    usage.flush()
    html = text(admin_client.get(page(plan)))
    assert "It would have refused 2 requests" in html
    assert "&lt;script&gt;key" in html
    for name in ("new", "acme", "key"):
        assert f"<script>{name}" not in html


@pytest.mark.usefixtures("on_redis")
def test_without_the_store_it_is_unavailable(admin_client: Client, plan: Plan) -> None:
    guarded = get_store()
    assert isinstance(guarded, GuardedStore)
    guarded.breaker.trip(StoreUnavailable("away"))
    html = text(admin_client.get(page(plan)))
    assert "Unavailable: the store that counts" in html
    assert "would have refused nothing" not in html
    # It can be switched all the same.
    assert "Enforce from now on" in html
