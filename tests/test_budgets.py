"""The views that tell callers all their limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import AsyncClient, Client
from django.urls import path
from rest_framework.authentication import BasicAuthentication
from rest_framework.permissions import IsAuthenticated

from ratelimits import edits, rows
from ratelimits.contrib.rest_framework import RateLimitSerializer, RateLimitView
from ratelimits.limiter import take
from ratelimits.views import rate_limit
from tests.conformance.watching import watch
from tests.docs.samples import sample
from tests.doors import PREFLIGHT, for_everyone, is_silent, make_plan, own_limit, per_address
from tests.fresh import PATIENT
from tests.servers import RedisServer
from tests.settings import MIDDLEWARE

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls(__name__),
    pytest.mark.usefixtures("still"),
]

BOTH = pytest.mark.parametrize("url", ["/rate_limit", "/drf/rate_limit"], ids=["django", "drf"])
PAGE = "docs/reference/answers.md"
OURS = "ratelimits.middleware.RateLimitMiddleware"
LOGIN = "django.contrib.auth.middleware.LoginRequiredMiddleware"


def by_header(request: Any) -> str | None:
    return request.headers.get("X-Tenant")


class Behind(RateLimitView):
    authentication_classes = [BasicAuthentication]
    permission_classes = [IsAuthenticated]


urlpatterns = [
    path("rate_limit", rate_limit),
    path("drf/rate_limit", RateLimitView.as_view()),
    path("drf/behind", Behind.as_view()),
]


@pytest.fixture(autouse=True)
def _by_header(settings: Any) -> None:
    settings.RATELIMITS = {**PATIENT, "TENANT": [by_header, "ratelimits.tenants.by_user"]}


def asked(client: Client, url: str = "/rate_limit", tenant: str = "acme") -> dict[str, Any]:
    response = client.get(url, headers={"X-Tenant": tenant})
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "private, no-store"
    told: dict[str, Any] = response.json()
    return told


def left(told: dict[str, Any]) -> dict[str, int | None]:
    return {each["name"]: each["remaining"] for each in told["limits"]}


@BOTH
def test_all_that_is_told_of_a_limit(url: str, client: Client) -> None:
    plan = make_plan("api 60/m")
    plan.limits.create(name="bulk", rate="10/m", burst=30, scope="export")
    plan.limits.create(name="billed", rate="1000/month", algorithm="fixed_window")
    take("acme", scope="export", cost=12)
    told = asked(client, url)
    assert told["available"] is True
    api, billed, bulk = told["limits"]
    assert api == {
        "name": "api",
        "scope": "",
        "limit": 60,
        "window": 60,
        "burst": 60,
        "remaining": 48,
        "reset": 48,
        "policy": '"api";q=60;w=60',
        "description": "60 requests per minute",
    }
    assert (bulk["scope"], bulk["burst"], bulk["remaining"]) == ("export", 30, 18)
    assert bulk["policy"] == '"bulk";q=10;w=60;ratelimits-burst=30'
    assert (billed["window"], billed["remaining"]) == (None, 988)
    assert set(api) == set(RateLimitSerializer().fields["limits"].child.fields)  # type: ignore[attr-defined]
    assert set(told) == set(RateLimitSerializer().fields)


def test_the_samples_of_the_documentation(client: Client) -> None:
    code, shown = sample(PAGE, "import rate_limit"), sample(PAGE, '"available": true')
    make_plan("api 60/m")
    take("acme", cost=12)
    assert asked(client) == json.loads(shown)
    included: dict[str, Any] = {"path": path, "urlpatterns": []}
    exec(code, included)
    (pattern,) = included["urlpatterns"]
    assert pattern.callback is rate_limit


@BOTH
def test_what_refuses_nobody_or_is_nobodys_own_is_left_out(url: str, client: Client) -> None:
    plan = make_plan("api 10/d")
    plan.limits.create(name="tried", rate="1/d", mode="shadow")
    plan.limits.create(name="gone", rate="1/d", mode="off")
    plan.limits.create(name="free", rate="unlimited")
    for_everyone("1000/s")
    per_address("7/m")
    own_limit("acme", "3/d", "extra")
    assert left(asked(client, url)) == {"api": 10, "extra": 3, "address": 7}


@BOTH
def test_it_is_free_and_publishes_nothing(url: str, client: Client, settings: Any) -> None:
    make_plan("api 10/d")
    per_address("7/m")
    settings.MIDDLEWARE = [OURS, *MIDDLEWARE]
    settings.RATELIMITS = {**settings.RATELIMITS, "PROTECT": ["/"]}
    for _ in range(3):
        assert is_silent(client.get(url, headers={"X-Tenant": "acme"}))
    assert left(asked(client, url)) == {"api": 10, "address": 7}


@BOTH
def test_what_nothing_is_left_of(url: str, client: Client) -> None:
    make_plan("api 2/m", "never 0/d")
    take("acme", cost=0)
    api, never = asked(client, url)["limits"]
    assert (api["remaining"], never["remaining"], never["limit"]) == (2, 0, 0)
    own_limit("acme", "2/m", "never")
    take("acme", cost=2)
    api, _ = asked(client, url)["limits"]
    assert (api["remaining"], api["reset"]) == (0, 30)


@BOTH
def test_a_caller_without_a_tenant(url: str, client: Client) -> None:
    make_plan("api 10/d")
    assert left(client.get(url).json()) == {"api": 10}


@BOTH
def test_other_methods(url: str, client: Client) -> None:
    make_plan("api 10/d")
    head = client.head(url)
    assert (head.status_code, head.content) == (200, b"")
    assert client.options(url).status_code == 200
    preflight: Any = PREFLIGHT
    assert client.options(url, **preflight).status_code == 200
    assert client.post(url).status_code == 405


def test_the_callers_of_a_project_that_asks_everybody_to_log_in(
    client: Client, settings: Any
) -> None:
    make_plan("api 10/d")
    settings.MIDDLEWARE = [*MIDDLEWARE, LOGIN]
    assert left(asked(client)) == {"api": 10}


def test_a_user_who_is_logged_in(client: Client) -> None:
    make_plan("api 10/d")
    user = User.objects.create_user("u")
    take(f"user:{user.pk}")
    client.force_login(user)
    assert left(client.get("/rate_limit").json()) == {"api": 9}


def test_authentication_of_drf(client: Client) -> None:
    make_plan("api 10/d")
    user = User.objects.create_user("u", password="p")
    take(f"user:{user.pk}")
    assert client.get("/drf/behind").status_code == 401
    response = client.get("/drf/behind", headers={"Authorization": "Basic dTpw"})
    assert left(response.json()) == {"api": 9}


async def test_under_asgi(async_client: AsyncClient) -> None:
    response = await async_client.get("/rate_limit", headers={"X-Tenant": "acme"})
    assert response.json() == {"available": True, "limits": []}


@pytest.mark.parametrize("mode", ["shadow", "off"])
def test_while_nothing_is_refused(mode: str, client: Client, settings: Any) -> None:
    make_plan("api 10/d")
    settings.RATELIMITS = {**settings.RATELIMITS, "MODE": mode}
    assert asked(client) == {"available": True, "limits": []}


@BOTH
def test_one_round_trip(url: str, client: Client, on_redis: RedisServer, settings: Any) -> None:
    make_plan("api 10/d", "search 5/d search")
    for_everyone("1000/s")
    settings.RATELIMITS = {**PATIENT, "TENANT": [by_header]}
    take("acme", scope="search")
    asked(client, url)
    with watch(on_redis) as seen:
        assert left(asked(client, url)) == {"api": 9, "search": 4}
    assert len(seen.sent) == 1


@BOTH
@pytest.mark.parametrize(("way", "number"), [("deny", None), ("allow", None), ("local", 10)])
def test_the_store_is_away(
    url: str, way: str, number: int | None, client: Client, on_redis: RedisServer, settings: Any
) -> None:
    make_plan("api 10/d")
    settings.RATELIMITS = {
        **PATIENT,
        "STORE_TIMEOUT": 0.2,
        "STORE_FAILURE": way,
        "TENANT": [by_header],
    }
    on_redis.stop()
    told = asked(client, url)
    assert told["available"] is (number is not None)
    assert left(told) == {"api": number}
    assert told["limits"][0]["limit"] == 10


def test_the_database_is_away(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OperationalError("away")

    monkeypatch.setattr(rows, "load_plans", fail)
    edits.shared.clear()
    assert asked(client) == {"available": False, "limits": []}


def test_the_exempt_have_no_limits(client: Client, settings: Any) -> None:
    make_plan("api 10/d")
    settings.RATELIMITS = {**settings.RATELIMITS, "EXEMPT": lambda request: True}
    assert asked(client, tenant="") == {"available": True, "limits": []}
