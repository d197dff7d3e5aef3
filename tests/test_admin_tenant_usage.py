from __future__ import annotations

import re
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from freezegun import freeze_time

from ratelimits import usage
from ratelimits.decorators import ratelimit
from ratelimits.limiter import take
from ratelimits.models import Tenant
from tests.admin_site import TENANTS
from tests.conformance.watching import watch
from tests.doors import make_plan, request
from tests.servers import RedisServer
from tests.test_admin_tenant_page import text_of

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.admin_site"),
    pytest.mark.usefixtures("fresh"),
]


@pytest.fixture
def tenant() -> Tenant:
    plan = make_plan("api 10/d", "search 2/d search")
    plan.limits.create(name="new", rate="1/d", mode="shadow")
    return Tenant.objects.create(key="acme", plan=plan)


def columns(client: Client) -> dict[str, tuple[str, str]]:
    """What the list says of each tenant: requests and refusals."""
    html = client.get(TENANTS).content.decode()
    cells = r'field-key">.*?>([^<]+)</a>.*?field-requests_lately">([^<]*)<.*?lately">([^<]*)<'
    return {key: (asked, refused) for key, asked, refused in re.findall(cells, html, re.DOTALL)}


def test_the_last_hour_of_a_tenant(admin_client: Client, tenant: Tenant) -> None:
    with freeze_time(timezone.now()) as time:
        take("acme", cost=10)
        usage.flush()
        time.tick(25 * 3600)
        take("acme", cost=9)
        for _ in range(3):
            take("acme", scope="search", cost=2)
        usage.flush()
        text = text_of(admin_client, tenant)
    assert "Requests in the last hour: 4, refused: 3." in text
    assert re.search(r"api 10 requests per day all .*? 3 new 1 request per day", text)
    assert re.search(r"new 1 request per day in shadow.*? 4 would have been", text)


def test_limits_in_code_that_refused(admin_client: Client, tenant: Tenant, settings: Any) -> None:
    settings.RATELIMITS = {"TENANT": lambda request: "acme"}
    view = ratelimit("1/d", by="tenant", name="login")(lambda request: HttpResponse())
    assert [view(request()).status_code for _ in range(3)] == [200, 429, 429]
    usage.flush()
    assert "“login” refused 2 in the last hour. It is in no plan" in text_of(admin_client, tenant)


def test_one_that_was_never_seen(admin_client: Client, tenant: Tenant) -> None:
    assert "Not seen in traffic within the last 3 days." in text_of(admin_client, tenant)
    with freeze_time(timezone.now()) as time:
        take("acme")
        usage.flush()
        time.tick(50 * 3600)
        text = text_of(admin_client, tenant)
    assert "Requests in the last hour: 0, refused: 0." in text


def test_one_without_a_row_that_was_seen(admin_client: Client, tenant: Tenant) -> None:
    take("bakery")
    usage.flush()
    html = admin_client.post(f"{TENANTS}find/", {"key": "bakery"}).content.decode()
    assert "Requests in the last hour: 1, refused: 0." in html


def test_keys_that_have_no_row_are_suggested(admin_client: Client, tenant: Tenant) -> None:
    told = "Seen lately, without a row"
    assert told not in admin_client.get(f"{TENANTS}add/").content.decode()
    for number in (1, 2, 3, 4):
        for _ in range(2 * number):
            take(f"user:{number}")
    for _ in range(9):
        take("acme")
    for _ in range(5):
        take("<script>evil")
    usage.flush()
    html = admin_client.get(f"{TENANTS}add/").content.decode()
    assert f"{told}: user:4, user:3, &lt;script&gt;evil." in html
    assert "<script>evil" not in html
    assert told not in admin_client.get(f"{TENANTS}{tenant.pk}/change/").content.decode()


def test_the_list_says_what_each_did(admin_client: Client, tenant: Tenant) -> None:
    Tenant.objects.create(key="bakery")
    for _ in range(2):
        take("acme", cost=9)
    usage.flush()
    assert columns(admin_client) == {"acme": ("2", "1"), "bakery": ("0", "0")}


@pytest.mark.django_db(transaction=True)
def test_a_hundred_tenants_take_one_round_trip(
    admin_client: Client, on_redis: RedisServer, django_assert_max_num_queries: Any
) -> None:
    make_plan("api 10/d")
    Tenant.objects.bulk_create(Tenant(key=f"t{number:03}") for number in range(120))
    take("t007")
    usage.flush()
    columns(admin_client)
    with watch(on_redis) as seen, django_assert_max_num_queries(10):
        found = columns(admin_client)
    assert len(found) == 100
    assert (found["t007"], found["t008"]) == (("1", "0"), ("0", "0"))
    assert len(seen.sent) == 1


@pytest.mark.django_db(transaction=True)
def test_the_store_away(
    admin_client: Client, on_redis: RedisServer, tenant: Tenant, settings: Any
) -> None:
    settings.RATELIMITS = {"STORE_TIMEOUT": 0.2}
    on_redis.stop()
    assert columns(admin_client) == {"acme": ("unavailable", "unavailable")}
    text = text_of(admin_client, tenant)
    assert "What it did in the last hour is unavailable." in text
    assert "unavailable unavailable" in text
