"""Admin sites beside Django's own, some of which lack a part of our models."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.contrib.admin.sites import all_sites
from django.contrib.auth.models import Permission, User
from django.db.models import Model
from django.test import Client
from django.urls import path

from ratelimits import usage
from ratelimits.limiter import take
from ratelimits.models import ModeSwitch, Plan, ScopeCost, ServiceLimit, Tenant, Upstream
from tests.doors import make_plan

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

MODELS = {Plan, Tenant, ServiceLimit, ScopeCost, ModeSwitch, Upstream}
HAVE: dict[str, set[type[Model]]] = {
    "ops": MODELS,
    "no_tenants": MODELS - {Tenant},
    "no_plans": {Tenant},
}
# Of tenants and plans, beside those that each model has.
OWN = {
    "tenant": ["dashboard/", "receipt/", "find/", "{pk}/raise/", "{pk}/reset/"],
    "plan": ["{pk}/move/"],
}


def _site(name: str) -> admin.AdminSite:
    site = admin.AdminSite(name)
    # Django's checks look at all sites there are, in other tests too, and one that has tenants and
    # no plans is none that they let pass.
    all_sites.discard(site)
    for model in HAVE[name]:
        site.register(model, type(admin.site._registry[model]))
    return site


SITES = {name: _site(name) for name in HAVE}
urlpatterns = [
    path("admin/", admin.site.urls),
    *(path(f"{name}/", site.urls) for name, site in SITES.items()),
]


@pytest.fixture(autouse=True)
def rows() -> None:
    """Something to show and to link on each page."""
    plan = make_plan("api 2/m")
    plan.limits.create(name="new", rate="1/h", mode="shadow")
    ServiceLimit.objects.create(name="slow", rate="1/h", mode="shadow")
    ScopeCost.objects.create(scope="search", cost=2)
    Upstream.objects.create(slug="vendor").limits.create(name="calls", rate="10/s")
    Tenant.objects.create(key="acme", plan=plan)
    for _ in range(4):
        take("acme")
    usage.flush()


def _pages(name: str) -> Iterator[str]:
    yield f"/{name}/"
    yield f"/{name}/ratelimits/"
    for model in HAVE[name]:
        pages = ["", "add/"]
        row = model._default_manager.first()
        if row is not None:
            own = OWN.get(model._meta.model_name or "", [])
            found = ["{pk}/change/", "{pk}/delete/", "{pk}/history/", *own]
            pages += [page.format(pk=row.pk) for page in found]
        yield from (f"/{name}/ratelimits/{model._meta.model_name}/{page}" for page in pages)


def _links(html: str) -> set[str]:
    return {
        link for link in re.findall(r'(?:href|action)="(/[^"?]+)', html) if "static" not in link
    }


@pytest.mark.parametrize("name", HAVE)
def test_every_page_links_to_its_own_site(name: str, admin_client: Client) -> None:
    for page in _pages(name):
        response = admin_client.get(page)
        assert response.status_code == 200, page
        others = {link for link in _links(response.content.decode()) if link.split("/")[1] != name}
        assert not others, page


def test_no_link_to_a_plan_that_the_user_must_not_see(client: Client) -> None:
    user = User.objects.create_user("support", is_staff=True)
    allowed = ("change_tenant", "view_tenant", "change_tenantlimit", "add_tenantlimit")
    user.user_permissions.set(Permission.objects.filter(codename__in=allowed))
    client.force_login(user)
    for page in ("dashboard/", f"{Tenant.objects.get().pk}/change/"):
        html = client.get(f"/admin/ratelimits/tenant/{page}").content.decode()
        assert "plan free" in html or "free, the" in html
        assert "/admin/ratelimits/plan/" not in html, page


def test_no_link_to_tenants_that_the_user_must_not_see(client: Client) -> None:
    user = User.objects.create_user("sales", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_plan"))
    client.force_login(user)
    html = client.get("/admin/ratelimits/plan/").content.decode()
    assert '<td class="field-tenant_count">1</td>' in html
    assert "/admin/ratelimits/tenant/" not in html
