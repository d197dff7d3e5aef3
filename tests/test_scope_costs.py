"""What an operator sets as the cost of a scope, at all doors and by the limiter's functions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, connection
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits import decorators, edits, limiter, rows
from ratelimits.decorators import ratelimit
from ratelimits.exceptions import CatalogUnavailable
from ratelimits.models import ScopeCost
from ratelimits.throttling import PlanRateThrottle
from tests.checking import ids
from tests.doors import left, make_plan, problem

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


class Search(APIView):
    throttle_classes = [PlanRateThrottle]
    throttle_scope = "search"
    throttle_cost = 2

    def get(self, request: Any) -> Response:
        return Response({})

    @decorators.throttle_cost(lambda request, view: len(request.data))
    def post(self, request: Any) -> Response:
        return Response({})


def hello(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(limiter.take(request, scope="search", cost=9).cost))


urlpatterns = [
    path("drf", Search.as_view()),
    path("plan", ratelimit(scope="search", cost=2)(lambda request: HttpResponse())),
    path("computed", ratelimit(scope="search", cost=lambda r: 3)(lambda request: HttpResponse())),
    path("code", ratelimit("100/d", by="ip", scope="search", cost=2, name="code")(hello)),
    path(
        "both",
        ratelimit(scope="search", cost=2)(
            ratelimit("100/d", by="ip", cost=4, name="code")(lambda request: HttpResponse())
        ),
    ),
    path("inside", hello),
]


@pytest.fixture(autouse=True)
def search() -> None:
    make_plan("api 100/d", "search 50/d search")
    ScopeCost.objects.create(scope="search", cost=5)


@pytest.mark.parametrize("door", ["drf", "plan", "computed"])
def test_doors(client: Client, door: str) -> None:
    assert left(client.get(f"/{door}")) == {"api": 95, "search": 45}


def test_computed_costs(client: Client) -> None:
    """Whatever the code says, also if it says so of each request."""
    response = client.post("/drf", [1, 2, 3, 4, 5, 6, 7], content_type="application/json")
    assert left(response) == {"api": 95, "search": 45}


def test_limits_in_code(client: Client) -> None:
    """Also those hear of an edit at once. What one request takes twice counts once."""
    assert left(client.get("/code"))["code"] == 95
    ScopeCost.objects.update(cost=6)
    assert left(client.get("/code"))["code"] == 89
    ScopeCost.objects.all().delete()
    assert left(client.get("/code"))["code"] == 87


def test_rules_side_by_side(client: Client) -> None:
    """Each rule has its scope's cost; one without a scope has its own."""
    assert left(client.get("/both")) == {"api": 95, "search": 45, "code": 96}


def test_a_view_is_told_the_cost(client: Client) -> None:
    assert client.get("/inside").content == b"5"


@pytest.mark.parametrize("take", [limiter.take, async_to_sync(limiter.atake)])
def test_functions(take: Callable[..., Any]) -> None:
    assert limiter.peek("acme", scope="search").cost == 5
    decision = take("acme", scope="search", cost=1)
    assert decision.cost == 5
    assert [outcome.remaining for outcome in decision.outcomes] == [95, 45]
    assert take("acme", cost=1).outcomes[0].remaining == 94
    assert take("acme", scope="export", cost=2).outcomes[0].remaining == 92


def test_amounts_stay_amounts() -> None:
    taken = limiter.take("acme", scope="search")
    charged = limiter.charge("acme", scope="search", cost=1)
    assert charged.outcomes[1].remaining == 44
    refunded = limiter.refund("acme", scope="search", cost=taken.cost)
    assert refunded.outcomes[1].remaining == 49


def test_a_refusal_tells_the_cost(client: Client) -> None:
    ScopeCost.objects.update(cost=51)
    body = problem(client.get("/drf"))
    assert body["cost"] == 51
    assert "costs 51" in body["detail"]
    assert not body["retryable"]


def test_free_of_charge(client: Client) -> None:
    ScopeCost.objects.update(cost=0)
    assert [left(client.get("/drf")) for _ in range(2)] == [{"api": 100, "search": 50}] * 2


def test_without_limits() -> None:
    rows.model("PlanLimit").objects.all().delete()
    assert limiter.take("acme", scope="search").cost == 5


def test_limits_in_code_count_without_a_database(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise CatalogUnavailable

    monkeypatch.setattr(edits.shared, "load", fail)
    response = client.get("/code")
    assert response.status_code == 200
    assert left(response)["code"] == 98


@pytest.mark.parametrize("bad", ["'ten'", "-1"])
def test_bad_rows(bad: str, caplog: pytest.LogCaptureFixture) -> None:
    """Written past everything. They are left out, and the check names them."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        cursor.execute(f"UPDATE ratelimits_scopecost SET cost = {bad}")
        cursor.execute("PRAGMA ignore_check_constraints = OFF")
    edits.shared.clear()
    assert [limiter.peek("acme", scope="search", cost=2).cost for _ in range(2)] == [2, 2]
    (line,) = (r.getMessage() for r in caplog.records if r.levelno == logging.ERROR)
    assert "ScopeCost" in line and "is not a cost" in line
    assert "W032" in ids(databases=["default"])


def test_a_scope_has_a_name() -> None:
    with pytest.raises(IntegrityError):
        ScopeCost.objects.create(scope="", cost=1)
