"""A receipt is explained to whoever may look at tenants, and what is none is not."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from freezegun import freeze_time

from ratelimits.limits import Decision, Occasion
from ratelimits.models import Plan, Tenant
from ratelimits.receipts import receipt_of
from tests.decisions import decision, limit, violated
from tests.settings import redis_caches

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin_site")]
PAGE = "/admin/ratelimits/tenant/receipt/"
ACME = Occasion("acme", "192.0.2.1", "search", "/api/search")


@pytest.fixture
def acme() -> Tenant:
    plan = Plan.objects.create(slug="pro", name="Pro", is_default=True)
    plan.limits.create(name="requests", rate="200/m")
    return Tenant.objects.create(key="acme", name="Acme", plan=plan)


def refused(occasion: Occasion = ACME, wait: float | None = 6, **options: Any) -> Decision:
    of = limit("requests", options.pop("rate", "100/m"), per=options.pop("per", "tenant"))
    return decision(violated(of, wait, **options), occasion=occasion)


def page(client: Client, pasted: str) -> str:
    """What a page says, without its tags."""
    html = client.post(PAGE, {"receipt": pasted}).content.decode()
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def test_where_it_is(admin_client: Client) -> None:
    assert reverse("admin:ratelimits_receipt") == PAGE
    response = admin_client.get(PAGE)
    assert response.status_code == 200
    assert "What happened" not in response.content.decode()


@freeze_time("2026-11-30 12:00:00", tick=True)
def test_a_refusal_in_words(admin_client: Client, acme: Tenant) -> None:
    with freeze_time("2026-11-30 11:48:00"):
        body = json.dumps({"instance": receipt_of(refused(cost=3, remaining=2))})
    response = admin_client.post(PAGE, {"receipt": f"\n  {body}"})
    (who, why, told) = response.context["found"].story
    assert who.startswith("“Acme (acme)” was refused on Nov. 30, 2026, ")
    assert who.endswith(" 13 min ago, calling from 192.0.2.1.")
    assert why == (
        "The limit “requests” (100 requests per minute) had 2 of 100 left, and the request cost 3."
    )
    assert told.startswith("The caller was told to wait 6 s, until Nov. 30, 2026, ")
    assert told.endswith("That time is over.")
    html = response.content.decode()
    assert f'href="/admin/ratelimits/tenant/{acme.pk}/change/"' in html
    assert f'href="/admin/ratelimits/plan/{acme.plan_id}/change/"' in html
    facts = dict(response.context["found"].facts)
    assert facts["time"] == "2026-11-30 11:48:00.000+00:00"
    assert (facts["path"], facts["scope"], facts["status"]) == ("/api/search", "search", "429")
    # And what has become of the limit.
    assert "200 requests per minute" in html


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (refused(Occasion(None, "192.0.2.9")), "A caller without a tenant, at 192.0.2.9,"),
        (refused(Occasion("acme")), "“Acme (acme)” was refused on"),
        (refused(per="address"), "For this address, the limit “requests”"),
        (refused(per="everyone"), "The service as a whole was busy, whatever the caller had used"),
        (refused(wait=None, rate="0/m"), "(0 requests per minute) refuses every request."),
        (refused(wait=None, cost=101), "The request cost 101, and the limit “requests”"),
        (refused(wait=None, cost=101), "told that trying again does not help"),
        (refused(wait=3600), "That is still to come."),
        (refused(ACME._replace(local=True)), "The process decided this by itself"),
        (decision(unavailable=True), "the store that holds the counts could not be reached"),
        (refused(Occasion("gone")), "“gone” was refused on"),
        (refused(Occasion("<b>")), "“<b>” was refused on"),
    ],
)
def test_kinds_of_refusals(admin_client: Client, acme: Tenant, of: Decision, says: str) -> None:
    assert says in page(admin_client, receipt_of(of))


def test_nothing_is_taken_for_html(admin_client: Client, acme: Tenant) -> None:
    receipt = receipt_of(refused(Occasion("<script>x", "", "<script>y", "/<script>z")))
    html = admin_client.post(PAGE, {"receipt": receipt}).content.decode()
    assert "&lt;script&gt;x" in html and "&lt;script&gt;z" in html
    assert "<script>" not in html.replace("<script src", "")


def test_its_label(admin_client: Client, acme: Tenant, settings: Any) -> None:
    settings.RATELIMITS = {"TENANT_LABEL": lambda key: (f"{key} Inc.", "/crm/7")}
    html = admin_client.post(PAGE, {"receipt": receipt_of(refused())}).content.decode()
    assert '<a href="/crm/7">acme Inc.</a>' in html


def test_a_key_that_was_cut(admin_client: Client, acme: Tenant) -> None:
    long = Tenant.objects.create(key="k" * 200, name="Long")
    receipt = receipt_of(refused(Occasion(long.key)))
    assert "“Long (kkk" in page(admin_client, receipt)
    Tenant.objects.create(key="k" * 199, name="Other")
    assert "“kkk" in page(admin_client, receipt)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda receipt: "", "This field is required."),
        (lambda receipt: "Quota Exceeded", "There is no receipt in this."),
        (lambda receipt: receipt[:45], "only the beginning"),
        (lambda receipt: receipt[:-1], "not ours, or not as we gave it"),
        (lambda receipt: "x" * 20_001, "at most 20000 characters"),
    ],
)
def test_what_is_no_receipt(admin_client: Client, change: Any, says: str) -> None:
    text = page(admin_client, change(receipt_of(refused())))
    assert says in text
    assert "What happened" not in text


def test_one_that_is_too_old(admin_client: Client) -> None:
    with freeze_time() as clock:
        clock.tick(-timedelta(days=31))
        receipt = receipt_of(refused())
    assert "This receipt is too old" in page(admin_client, receipt)


def test_the_store_away(admin_client: Client, acme: Tenant, settings: Any) -> None:
    settings.CACHES = redis_caches("redis://127.0.0.1:1/0")
    text = page(admin_client, receipt_of(refused()))
    assert "“Acme (acme)” was refused on" in text
    assert "unavailable" in text


def test_who_may_read_it(client: Client) -> None:
    assert client.get(PAGE).status_code == 302
    user = User.objects.create_user("staff", is_staff=True)
    client.force_login(user)
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {"receipt": receipt_of(refused())}).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="view_tenant"))
    assert "“acme” was refused" in page(client, receipt_of(refused()))


def test_it_is_posted(admin_client: Client) -> None:
    response = admin_client.get(PAGE, {"receipt": receipt_of(refused())})
    assert "What happened" not in response.content.decode()
