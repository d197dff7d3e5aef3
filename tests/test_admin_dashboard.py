"""The dashboard: what it shows, to whom, and what of it while the store is away."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from freezegun import freeze_time

from ratelimits import limiter, usage
from ratelimits.admin.chart import nice
from ratelimits.models import Plan, Tenant
from tests.servers import free_port
from tests.settings import redis_caches

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.admin_site"),
    pytest.mark.usefixtures("fresh"),
]
NOON = "2026-07-01 12:00:10"


@pytest.fixture
def plan() -> Plan:
    plan = Plan.objects.create(slug="pro", name="Pro", is_default=True)
    plan.limits.create(name="api", rate="3/h")
    plan.limits.create(name="new", rate="2/h", mode="shadow")
    return plan


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("operator", password="secret"))
    return client


def page(client: Client) -> str:
    response = client.get(reverse("admin:ratelimits_dashboard"))
    assert response.status_code == 200
    return response.content.decode()


def texts(html: str, ident: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    part = html.partition(f'aria-labelledby="{ident}"')[2].partition("</section>")[0]
    rows = re.findall(r"(?s)<tr>(.*?)</tr>", part)
    return [
        [" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in re.findall(CELL, row)]
        for row in rows
    ]


CELL = r"(?s)<t[hd][^>]*>(.*?)</t[hd]>"


@freeze_time(NOON)
def test_who_asks_most_and_who_is_refused(
    operator: Client, plan: Plan, settings: Any, django_assert_max_num_queries: Any
) -> None:
    settings.RATELIMITS = {
        "CLOCK": "process",
        "TENANT_LABEL": lambda key: ("ACME Inc.", "/crm/7") if key == "acme" else None,
    }
    tenant = Tenant.objects.create(key="acme", name="Acme")
    Tenant.objects.bulk_create(Tenant(key=f"t{n}") for n in range(100))
    for key, times in (("acme", 5), ("<b>nobody</b>", 2), *((f"t{n}", 1) for n in range(30))):
        for _ in range(times):
            limiter.take(key)
    usage.flush()
    with django_assert_max_num_queries(14):
        html = page(operator)
    _, acme, nobody, *others = texts(html, "ratelimits-busiest")
    assert acme == ["Acme (acme) ACME Inc.", "5", "3", "2", "3"]
    assert nobody == ["&lt;b&gt;nobody&lt;/b&gt; no row", "2", "2", "0", "0"]
    assert len(others) == 18
    assert texts(html, "ratelimits-refusing")[1:] == [
        ["Acme (acme) ACME Inc.", "api", "-", "2", "07:00", "07:00"]
    ]
    assert f'<a href="/admin/ratelimits/tenant/{tenant.pk}/change/">Acme (acme)</a>' in html
    assert '<a href="/crm/7">ACME Inc.</a>' in html


@freeze_time(NOON)
def test_a_caller_without_a_row_is_found_with_a_click(
    operator: Client, plan: Plan, settings: Any
) -> None:
    settings.RATELIMITS = {"CLOCK": "process"}
    limiter.take("user:7")
    usage.flush()
    forms = r'(?s)<form method="post" action="([^"]*find/)">(.*?)</form>'
    ((action, form),) = re.findall(forms, page(operator))
    fields = dict(re.findall(r'<input type="hidden" name="(key)" value="([^"]*)"', form))
    assert fields == {"key": "user:7"}
    assert "Give it a row" in operator.post(action, fields).content.decode()


@freeze_time(NOON)
def test_charts(operator: Client, plan: Plan, settings: Any) -> None:
    settings.RATELIMITS = {"CLOCK": "process"}
    html = page(operator)
    assert "0 allowed, 0 refused" in html
    assert "points=" not in html.partition("</ul>")[2].partition("<svg class")[2]
    for _ in range(4):
        limiter.take("acme")
    usage.flush()
    html = page(operator)
    assert html.count("<desc id") == 2
    assert "3 allowed, 1 refused, 2 would be refused" in html
    assert texts(html, "ratelimits-requests")[1] == ["07:00", "3", "1", "2"]
    (svg, _) = re.findall(r'(?s)<svg class="ratelimits-chart".*?</svg>', html)
    heights = re.findall(r'class="ratelimits-(allowed|denied)"[^>]*height="([^"]*)"', svg)
    assert len(heights) == 120
    # Most is 4, at which the bar is as high as the chart: 146 units.
    assert heights[-2:] == [("allowed", "109.5"), ("denied", "36.5")]
    assert "style=" not in html


def test_the_store(operator: Client, plan: Plan) -> None:
    html = page(operator)
    assert "Memory: the memory of each process" in html
    assert re.search(r"It answers in 0\.\d\d ms; requests wait 50 ms at most\.", html)
    assert "Processes that share it: 1." in html


def test_a_dummy(operator: Client, settings: Any) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    html = page(operator)
    assert "counts nothing, so that nobody is limited" in html


@pytest.mark.parametrize("failure", ["local", "allow", "deny"])
def test_the_store_is_away(operator: Client, plan: Plan, settings: Any, failure: str) -> None:
    settings.CACHES = redis_caches(f"redis://127.0.0.1:{free_port()}/0")
    settings.RATELIMITS = {"STORE_FAILURE": failure}
    html = page(operator)
    assert html.count("Unavailable: the store does not answer") == 4
    assert "refused" in html
    told = {"local": "counts its part", "allow": "pass uncounted", "deny": "with 503"}
    assert [text in html for text in told.values()] == [name == failure for name in told]


@pytest.mark.parametrize("may", ["nothing", "view_tenant", "change_tenant"])
def test_who_may_see_it(client: Client, plan: Plan, may: str) -> None:
    user = User.objects.create_user("staff", password="secret", is_staff=True)
    permissions = Permission.objects.filter(codename__in=[may, "view_plan"])
    user.user_permissions.add(*permissions)
    client.force_login(user)
    response = client.get(reverse("admin:ratelimits_dashboard"))
    assert response.status_code == (403 if may == "nothing" else 200)
    for name in ("app_list", "ratelimits_plan_changelist"):
        args = ["ratelimits"] if name == "app_list" else []
        html = client.get(reverse(f"admin:{name}", args=args)).content.decode()
        assert (reverse("admin:ratelimits_dashboard") in html) == (may != "nothing")


def test_nobody_who_is_not_logged_in(client: Client) -> None:
    assert client.get(reverse("admin:ratelimits_dashboard")).status_code == 302


def test_round_numbers() -> None:
    most = [0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 61, 100, 101, 1999]
    assert [nice(one) for one in most] == [1, 1, 2, 4, 4, 6, 8, 10, 10, 20, 80, 100, 200, 2000]
