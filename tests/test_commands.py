from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from ratelimits.admin.traps import traps
from ratelimits.models import Plan, PlanLimit, Tenant
from ratelimits.signals import plans_edited, tenants_edited

pytestmark = pytest.mark.django_db


def run(*args: str) -> str:
    out = StringIO()
    call_command(*args, stdout=out, no_color=True)
    return out.getvalue()


def test_starter_makes_three_plans() -> None:
    printed = run("ratelimits_starter")
    free, pro, enterprise = Plan.objects.order_by("pk")
    assert [free.slug, pro.slug, enterprise.slug] == ["free", "pro", "enterprise"]
    assert (free.is_default, free.is_anonymous) == (True, True)
    assert not Plan.objects.exclude(pk=free.pk).filter(is_default=True).exists()
    assert "free: created (default and anonymous)" in printed
    for limit in PlanLimit.objects.all():
        assert str(limit) in printed


def test_starter_makes_what_the_admin_accepts_without_a_warning() -> None:
    run("ratelimits_starter")
    for plan in Plan.objects.all():
        plan.full_clean()
        for limit in plan.limits.all():
            limit.full_clean()
        assert plan.limits.exists()
        assert traps(plan.limits.all()) == []


def test_starter_leaves_plans_alone() -> None:
    Plan.objects.create(slug="own", name="Own")
    printed = run("ratelimits_starter")
    assert "Nothing changed" in printed and "own" in printed and "--add-missing" in printed
    assert Plan.objects.get().slug == "own"


def test_starter_runs_twice() -> None:
    run("ratelimits_starter")
    before = list(PlanLimit.objects.order_by("pk").values())
    assert "Nothing changed" in run("ratelimits_starter")
    assert "free: was there already" in run("ratelimits_starter", "--add-missing")
    assert list(PlanLimit.objects.order_by("pk").values()) == before


def test_starter_adds_what_is_missing() -> None:
    own = Plan.objects.create(slug="pro", name="Our pro", is_default=True)
    own.limits.create(name="n", rate="1/s")
    printed = run("ratelimits_starter", "--add-missing")
    assert "pro: was there already" in printed
    assert "free: created (anonymous)" in printed
    assert Plan.objects.get(is_default=True) == own
    assert Plan.objects.get(is_anonymous=True).slug == "free"
    assert own.limits.get().name == "n"
    assert Plan.objects.count() == 3


def test_starter_tells_that_no_plan_is_the_default() -> None:
    Plan.objects.create(slug="free", name="Free")
    assert "No plan is the default" in run("ratelimits_starter", "--add-missing")


@pytest.fixture
def heard() -> Iterator[list[Any]]:
    heard: list[Any] = []

    def plans(using: str, **kwargs: Any) -> None:
        heard.append(("plans", using))

    def tenants(using: str, keys: list[str] | None, **kwargs: Any) -> None:
        heard.append(("tenants", using, keys))

    plans_edited.connect(plans)
    tenants_edited.connect(tenants)
    yield heard
    plans_edited.disconnect(plans)
    tenants_edited.disconnect(tenants)


def test_refresh_announces_everything(heard: list[Any]) -> None:
    assert "all plans, tenants and upstreams" in run("ratelimits_refresh")
    assert heard == [("plans", "default"), ("tenants", "default", None)]


def test_refresh_announces_some_tenants(heard: list[Any]) -> None:
    Tenant.objects.create(key="acme")
    printed = run("ratelimits_refresh", "--tenant", "acme", "--tenant", "user:7")
    assert "acme, user:7" in printed
    assert heard == [("tenants", "default", ["acme", "user:7"])]
