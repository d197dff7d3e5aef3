"""Whom an edit of a plan's limits would concern, before it is saved."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from freezegun import freeze_time

from ratelimits import previews, usage
from ratelimits.limiter import take
from ratelimits.models import Plan, PlanLimit, Tenant
from ratelimits.previews import Change, preview_of
from tests.admin_site import PLANS
from tests.decisions import limit
from tests.settings import redis_caches

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("fresh"),
    pytest.mark.urls("tests.admin_site"),
]
NOON = "2026-07-01 12:00:10"


@pytest.fixture
def pro(settings: Any) -> Plan:
    settings.RATELIMITS = {"CLOCK": "process"}
    plan = Plan.objects.create(slug="pro", name="Pro")
    plan.limits.create(name="api", rate="100/m")
    plan.limits.create(name="search", rate="50/h", scope="search")
    return plan


@pytest.fixture
def used(pro: Plan) -> Plan:
    """What its tenants used in one minute of the day: acme 80, and bakery 70, searches included."""
    for key in ("acme", "bakery", "clinic"):
        Tenant.objects.create(key=key, plan=pro)
    Tenant.objects.create(key="other", plan=Plan.objects.create(slug="o", name="O"))
    with freeze_time("2026-07-01 02:00:10"):
        for key, cost in (("acme", 80), ("bakery", 30), ("other", 99), ("nobody", 99)):
            take(key, cost=cost)
        take("bakery", scope="search", cost=40)
        usage.flush()
    return pro


def edited(plan: Plan, **rates: str) -> dict[str, Change]:
    """What becomes of a plan if its limits have these rates; `off` removes one."""
    after = {row.name: limit(row.name, str(row.rate), scope=row.scope) for row in plan.limits.all()}
    for name, rate in rates.items():
        if rate == "off":
            del after[name]
        else:
            scope = after[name].scope if name in after else ""
            after[name] = limit(name, rate, scope=scope)
    with freeze_time(NOON):
        return {change.name: change for change in preview_of(plan, after.values()).changes}


def over(plan: Plan, **rates: str) -> dict[str, Any]:
    return {name: change.over for name, change in edited(plan, **rates).items()}


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({}, {}),
        ({"api": "100/m"}, {}),
        ({"api": "6000/h"}, {"api": ()}),
        ({"api": "80/m"}, {"api": ()}),
        ({"api": "79/m"}, {"api": ("acme",)}),
        ({"api": "60/m"}, {"api": ("acme", "bakery")}),
        ({"api": "1/s"}, {"api": ("acme", "bakery")}),
        ({"api": "79/h"}, {"api": ("acme",)}),
        ({"api": "79/d"}, {"api": ("acme",)}),
        ({"api": "0/m"}, {"api": ("acme", "bakery")}),
        ({"api": "200/m"}, {"api": ()}),
        ({"api": "unlimited"}, {"api": ()}),
        ({"api": "off"}, {"api": ()}),
        # Named otherwise, it counts what another one counted.
        ({"api": "off", "requests": "79/m"}, {"api": (), "requests": ("acme",)}),
        ({"search": "39/h"}, {"search": ("bakery",)}),
        ({"search": "40/h"}, {"search": ()}),
    ],
)
def test_who_used_more(used: Plan, rates: dict[str, str], expected: dict[str, Any]) -> None:
    assert over(used, **rates) == expected


def test_what_is_looser_concerns_nobody(used: Plan) -> None:
    """Although somebody may have used more, before it was as it is."""
    used.limits.filter(name="api").update(rate="10/m")
    assert over(used, api="20/m") == {"api": ()}


def test_a_scope_that_nothing_counted(used: Plan) -> None:
    with freeze_time(NOON):
        after = [limit("export", "1/h", scope="export")]
        changes = {change.name: change.over for change in preview_of(used, after).changes}
    assert changes == {"api": (), "search": (), "export": None}


def test_longer_ago(used: Plan) -> None:
    with freeze_time("2026-07-02 03:00"):
        (change,) = preview_of(used, [limit("api", "1/m"), *_search()]).changes
    assert change.over == ()


def _search() -> list[Any]:
    return [limit("search", "50/h", scope="search")]


def test_own_limits_stay(used: Plan) -> None:
    acme, bakery = Tenant.objects.filter(key__in=["acme", "bakery"]).order_by("key")
    acme.limits.create(name="api", rate="500/m")
    with freeze_time(NOON):
        bakery.limits.create(name="api", rate="1/m", expires_at=timezone.now() - timedelta(1))
    change = edited(used, api="10/m")["api"]
    assert (change.own, change.over) == (1, ("bakery",))


def test_the_default_plan(used: Plan) -> None:
    """Also those without a plan of their own, and callers without a row."""
    Plan.objects.filter(pk=used.pk).update(is_default=True)
    used.refresh_from_db()
    Tenant.objects.create(key="late")
    with freeze_time(NOON):
        for key in ("late", "stranger", "a\0b"):
            take(key, cost=70)
        usage.flush()
        preview = preview_of(used, [limit("api", "69/m"), *_search()])
    assert (preview.tenants, preview.looked_at, preview.without_row) == (4, 4, 1)
    assert preview.changes[0].over == ("acme", "bakery", "late", "stranger")


def test_of_many_the_busiest(used: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    Plan.objects.filter(pk=used.pk).update(is_default=True)
    monkeypatch.setattr(previews, "LOOKED_AT", 2)
    with freeze_time(NOON):
        for key, times in (("acme", 1), ("bakery", 3), ("clinic", 2), ("other", 9)):
            for _ in range(times):
                take(key)
        usage.flush()
        used.is_default = False
        preview = preview_of(used, [limit("api", "1/m"), *_search()])
    assert (preview.tenants, preview.looked_at) == (3, 2)
    assert preview.changes[0].over == ("bakery", "clinic")


def test_very_many_tenants(pro: Plan, django_assert_max_num_queries: Any) -> None:
    Tenant.objects.bulk_create(
        (Tenant(key=f"t{n}", plan=pro) for n in range(20_000)), batch_size=5_000
    )
    with django_assert_max_num_queries(6):
        preview = preview_of(pro, [limit("api", "1/m")])
    assert (preview.tenants, preview.looked_at) == (20_000, 0)


def posted(plan: Plan) -> dict[str, Any]:
    """What the plan's form posts when the button is pressed."""
    data: dict[str, Any] = {"name": plan.name, "slug": plan.slug, "_preview": "1"}
    rows = list(plan.limits.all())
    data |= {"limits-TOTAL_FORMS": len(rows) + 1, "limits-INITIAL_FORMS": len(rows)}
    for number, row in enumerate(rows):
        fields = {"id": row.pk, "plan": plan.pk, "name": row.name, "rate": row.rate}
        fields |= {"scope": row.scope, "algorithm": row.algorithm, "mode": row.mode}
        data |= {f"limits-{number}-{name}": value for name, value in fields.items()}
    blank = f"limits-{len(rows)}"
    return data | {f"{blank}-algorithm": "token_bucket", f"{blank}-mode": "enforce"}


def preview(client: Client, plan: Plan, data: dict[str, Any]) -> str:
    with freeze_time(NOON):
        response = client.post(f"{PLANS}{plan.pk}/change/", data)
    assert response.status_code == 200
    html = response.content.decode()
    found = re.search(r"(?s)<section[^>]*ratelimits-preview.*?</section>", html)
    text = found[0] if found else html
    return " ".join(unescape(re.sub("<[^>]*>", " ", text)).split())


def test_the_page_says_it_and_saves_nothing(admin_client: Client, used: Plan) -> None:
    with freeze_time(NOON):
        assert 'name="_preview"' in admin_client.get(f"{PLANS}{used.pk}/change/").content.decode()
        data = posted(used) | {"limits-0-rate": "79/m", "limits-1-mode": "shadow"}
        response = admin_client.post(f"{PLANS}{used.pk}/change/", data)
    html = response.content.decode()
    # What was typed is still there, to be saved or edited further.
    assert 'value="79/m"' in html
    assert "errornote" not in html
    text = preview(admin_client, used, data)
    assert "3 tenants have this plan." in text
    assert "“api”: 100 requests per minute becomes 79 requests per minute" in text
    assert "1 of them used more than that in a minute or an hour of the last day. acme" in text
    assert "“search”: 50 requests per hour, for “search” becomes 50 requests per hour" in text
    assert str(PlanLimit.objects.get(name="api").rate) == "100/m"
    assert PlanLimit.objects.get(name="search").mode == "enforce"
    del data["_preview"]
    with freeze_time(NOON):
        assert admin_client.post(f"{PLANS}{used.pk}/change/", data).status_code == 302
    assert str(PlanLimit.objects.get(name="api").rate) == "79/m"


def test_new_and_removed_limits(admin_client: Client, used: Plan) -> None:
    data = posted(used) | {
        "limits-1-DELETE": "on",
        "limits-2-name": "daily",
        "limits-2-rate": "70/d",
    }
    text = preview(admin_client, used, data)
    assert "“search” is removed: 50 requests per hour, for “search”" in text
    assert "“daily” is new: 70 requests per day" in text
    assert "1 of them used more than that in a minute or an hour of the last day. acme" in text


def test_who_cannot_be_refused_any_more(admin_client: Client, used: Plan) -> None:
    data = posted(used) | {"limits-0-rate": "unlimited", "limits-1-mode": "off"}
    text = preview(admin_client, used, data)
    assert "“api”: 100 requests per minute becomes unlimited" in text
    assert "for “search” becomes 50 requests per hour, for “search”, off" in text
    assert "of them used more" not in text


def test_nothing_changes(admin_client: Client, used: Plan) -> None:
    assert "No limit would change." in preview(admin_client, used, posted(used))


def test_what_is_wrong_is_said_instead(admin_client: Client, used: Plan) -> None:
    text = preview(admin_client, used, posted(used) | {"limits-0-rate": "ten/m"})
    assert "Please correct the error" in text
    assert "Not saved yet" not in text


def test_the_store_away(admin_client: Client, used: Plan, settings: Any) -> None:
    settings.CACHES = redis_caches("redis://127.0.0.1:1/0")
    text = preview(admin_client, used, posted(used) | {"limits-0-rate": "1/m"})
    assert "What tenants use is unavailable" in text
    assert "“api”: 100 requests per minute becomes 1 request per minute" in text
    assert "of them used more" not in text


def test_names_are_escaped(admin_client: Client, pro: Plan) -> None:
    Tenant.objects.create(key="<script>x", plan=pro)
    with freeze_time(NOON):
        take("<script>x", cost=50)
        usage.flush()
        data = posted(pro) | {"limits-0-rate": "1/m", "limits-0-name": "<script>y"}
        html = admin_client.post(f"{PLANS}{pro.pk}/change/", data).content.decode()
    assert "&lt;script&gt;x" in html and "“&lt;script&gt;y”" in html
    assert "<script>x" not in html and "<script>y" not in html
