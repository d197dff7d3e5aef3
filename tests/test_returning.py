"""A request that one door refuses has taken nothing at the doors before it (rule 1)."""

from __future__ import annotations

from functools import wraps
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits import limiter, rows
from ratelimits.algorithms import Operation
from ratelimits.decorators import ratelimit
from ratelimits.stores import get_store
from ratelimits.throttling import PlanRateThrottle
from tests.doors import for_everyone, left, make_plan, per_address, problem, request
from tests.views import CHAINS, OURS, SERVERS, AnyClient, hello

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


def other(view: Any) -> Any:
    """A decorator between two of ours, which makes them two takes."""

    @wraps(view)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return view(*args, **kwargs)

    return wrapper


def by_attribute(request: Any) -> str | None:
    return getattr(request, "tenant", None) or request.headers.get("x-tenant")


class Limited(APIView):
    throttle_classes = [PlanRateThrottle]
    throttle_cost = 2

    def get(self, request: Request) -> Response:
        return Response({})


@ratelimit(cost=2)
async def adecorated(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


on_plan = ratelimit()(hello)
once = ratelimit("1/d", by="ip", name="once")(hello)
# The outer one is known by its address, the inner one by its plan.
nested = ratelimit("9/d", by="ip", name="outer")(other(ratelimit(cost=2)(hello)))


@ratelimit("9/d", by="ip", name="batch")
def batch(request: HttpRequest) -> HttpResponse:
    """Calls limited views, the last of which may refuse."""
    statuses = [view(request).status_code for view in (on_plan, once)]
    return HttpResponse(str(statuses))


@ratelimit("9/d", by="ip", name="asking")
def asking(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(limiter.take(request, cost=5).allowed))


@ratelimit("9/d", by="ip", name="refunding")
def refunding(request: HttpRequest) -> HttpResponse:
    limiter.refund(request, cost=1)
    return nested(request)


@ratelimit()
def changing(request: Any) -> Any:
    """Who asks is known better at the inner door."""
    request.tenant = "acme"
    return other(ratelimit(cost=2)(hello))(request)


urlpatterns = [
    path("drf", Limited.as_view()),
    path("decorated", ratelimit(cost=2)(hello)),
    path("adecorated", adecorated),
    path("protected", hello),
    path("once", once),
    path("nested", nested),
    path("batch", batch),
    path("asking", asking),
    path("refunding", refunding),
    path("changing", changing),
]


def used() -> dict[str, int]:
    """What is left for the address of the tests, by limit."""
    decision = limiter.peek(request(), cost=0)
    return {outcome.name: outcome.remaining for outcome in decision.outcomes}


@pytest.fixture
def operations(monkeypatch: pytest.MonkeyPatch) -> list[Operation]:
    """What the store was asked, in order."""
    store, asked = get_store(), []
    assert store is not None
    run, arun = store.run, store.arun

    def running(operation: Operation, *args: Any) -> Any:
        asked.append(operation)
        return run(operation, *args)

    def arunning(operation: Operation, *args: Any) -> Any:
        asked.append(operation)
        return arun(operation, *args)

    monkeypatch.setattr(store, "run", running)
    monkeypatch.setattr(store, "arun", arunning)
    return asked


@SERVERS
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("url", ["/drf", "/decorated", "/adecorated", "/protected"])
async def test_the_address_gets_back_what_the_plan_refuses(
    caller: AnyClient, chain: str, url: str, settings: Any, operations: list[Operation]
) -> None:
    """And is told so. It costs another command, and only those who are refused."""
    caller = AnyClient(caller.is_async)
    settings.MIDDLEWARE = CHAINS[chain]
    settings.RATELIMITS = {"PROTECT": ["/protected"]}
    cost = 1 if url == "/protected" else 2
    await sync_to_async(make_plan)(f"api {cost}/d")
    await sync_to_async(per_address)("9/d")
    allowed = await caller.get(url)
    assert (allowed.status_code, left(allowed)) == (200, {"api": 0, "address": 9 - cost})
    assert Operation.REFUND not in operations
    for _ in range(3):
        operations.clear()
        refused = await caller.get(url)
        assert problem(refused)["violated-policies"] == ["api"]
        assert left(refused) == {"address": 9 - cost, "api": 0}
        assert operations.count(Operation.REFUND) == 1
    assert (await sync_to_async(used)()) == {"api": 0, "address": 9 - cost}


@pytest.mark.parametrize("middleware", [[], [OURS]])
def test_decorators_around_each_other(client: Any, settings: Any, middleware: Any) -> None:
    settings.MIDDLEWARE = middleware
    make_plan("api 1/d")
    for _ in range(3):
        refused = client.get("/nested")
        assert refused.status_code == 429
        assert left(refused) == {"outer": 9, "api": 1}


def test_a_limit_in_shadow_gets_nothing_back(client: Any, settings: Any) -> None:
    """It may have taken less than the cost, since it never refuses."""
    settings.MIDDLEWARE = [OURS]
    make_plan("api 0/d")
    per_address("3/d", mode="shadow")
    assert [client.get("/drf").status_code for _ in range(2)] == [429, 429]
    assert used() == {"api": 0, "address": 1}


def test_a_raised_cost_gives_back_nothing_of_a_shadow_limit() -> None:
    """What it was asked for is not what it took."""
    plan = make_plan("hard 3/d")
    plan.limits.create(name="shadow", rate="2/d", mode="shadow")
    limiter.take(request(), cost=2)
    asked = request()
    assert limiter.take(asked, cost=1).allowed
    assert not limiter.take(asked, cost=3).allowed
    assert used() == {"hard": 1, "shadow": 0}


def test_a_view_that_asks_the_limiter_itself_was_let_in(client: Any) -> None:
    make_plan("api 3/d")
    answers = [client.get("/asking") for _ in range(2)]
    assert [answer.content for answer in answers] == [b"False"] * 2
    assert left(answers[1]) == {"asking": 7, "api": 3}


def test_a_view_that_ran_was_not_for_nothing(client: Any) -> None:
    """Or else one refused part of a batch would make the others free."""
    make_plan("api 5/d")
    answers = [client.get("/batch") for _ in range(3)]
    assert [answer.content for answer in answers] == [b"[200, 200]", *[b"[200, 429]"] * 2]
    assert left(answers[-1]) == {"batch": 6, "api": 2, "once": 0}


def test_what_was_given_back_is_not_given_back_again(client: Any) -> None:
    make_plan("api 1/d")
    assert client.get("/refunding").status_code == 429
    assert left(client.get("/refunding")) == {"refunding": 9, "outer": 9, "api": 1}


def test_two_tenants_of_one_plan(client: Any, settings: Any) -> None:
    """Each has its own numbers, of one limit."""
    settings.RATELIMITS = {"TENANT": by_attribute}
    make_plan("api 5/d")
    limiter.take("acme", cost=4)
    headers = {"x-tenant": "other"}
    assert client.get("/changing", headers=headers).status_code == 429
    remaining = [limiter.peek(key).outcomes[0].remaining for key in ("acme", "other")]
    assert remaining == [1, 5]


def test_everyones_limit_gives_the_address_its_own_back(client: Any, settings: Any) -> None:
    settings.MIDDLEWARE = [OURS]
    make_plan("api 9/d")
    per_address("9/d")
    for_everyone("0/s")
    refused = client.get("/drf")
    assert refused.status_code == 503
    assert used()["address"] == 9


def test_refused_since_the_limits_can_not_be_read(
    client: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MIDDLEWARE = [OURS]
    settings.RATELIMITS = {"STORE_FAILURE": "deny", "TENANT": by_attribute}
    make_plan("api 9/d")
    per_address("9/d")
    assert used()["address"] == 9

    def fail(key: str) -> Any:
        raise OperationalError("disk I/O error")

    monkeypatch.setattr(rows, "load_tenant", fail)
    refused = client.get("/drf", headers={"x-tenant": "acme"})
    assert refused.status_code == 503
    assert left(refused) == {"address": 9}
