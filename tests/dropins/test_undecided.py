"""Throttles whose own allow_request may let pass whom ours has refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client, RequestFactory
from django.urls import path
from rest_framework.exceptions import Throttled
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from ratelimits.throttling import UserRateThrottle
from tests.doors import left, per_address, policies, statuses
from tests.settings import database_caches

pytestmark = [pytest.mark.urls(__name__), pytest.mark.usefixtures("still")]


class View(APIView):
    def get(self, request: Any) -> Response:
        return Response({})


class Trying(UserRateThrottle):
    """Only logs for now whom it would refuse."""

    rate = "1/day"
    scope = "trying"

    def allow_request(self, request: Any, view: Any) -> bool:
        would = super().allow_request(request, view)
        request.META["would"] = would
        return True


class Knowing(UserRateThrottle):
    """Knows customers whom nothing limits, and has a wait of its own."""

    rate = "1/day"
    scope = "knowing"

    def allow_request(self, request: Any, view: Any) -> bool:
        return super().allow_request(request, view) or "X-Vip" in request.headers

    def wait(self) -> float | None:
        return 90_000


class Hourly(UserRateThrottle):
    rate = "3/hour"
    scope = "hourly"


class Plain(BaseThrottle):
    """One that is nobody's of ours."""

    def allow_request(self, request: Any, view: Any) -> bool:
        return "X-No" not in request.headers

    def wait(self) -> float:
        return 7


def at(*kinds: Any) -> Any:
    made: Any = type("Made", (View,), {"throttle_classes": kinds})
    view = made.as_view()
    return lambda **headers: view(RequestFactory().get("/", headers=headers))


class Known(View):
    throttle_classes = [Knowing, Hourly]


urlpatterns = [path("there", Known.as_view())]


@pytest.mark.parametrize("kinds", [(Trying, Hourly), (Hourly, Trying)])
def test_throttles_beside_one_that_only_logs_count(kinds: Any) -> None:
    ask = at(*kinds)
    assert left(ask()) == {"trying": 0, "hourly": 2}
    answer = ask()
    # What limits nobody is not published as if it did.
    assert (answer.status_code, left(answer)) == (200, {"hourly": 1})
    assert policies(answer) == ["hourly"]
    assert statuses(ask, 2) == [200, 429]
    refused = ask()
    assert int(refused.headers["Retry-After"]) <= 3600
    assert refused.data["violated-policies"] == ["hourly"]


def test_it_knows_itself_whom_it_would_refuse() -> None:
    request = RequestFactory().get("/")
    made: Any = type("Made", (View,), {"throttle_classes": [Trying]})
    told = []
    for _ in range(2):
        made.as_view()(request)
        told.append(request.META["would"])
    assert told == [True, False]


@pytest.mark.parametrize("kinds", [(Knowing, Hourly), (Hourly, Knowing)])
def test_customers_whom_nothing_limits_are_limited_by_others(kinds: Any) -> None:
    ask = at(*kinds)
    vips = statuses(lambda: ask(**{"X-Vip": "yes"}), 4)
    assert vips == [200, 200, 200, 429]


@pytest.mark.parametrize("kinds", [(Knowing, Hourly), (Hourly, Knowing)])
def test_who_is_refused_takes_nothing(kinds: Any) -> None:
    ask = at(*kinds)
    assert statuses(ask, 4) == [200, 429, 429, 429]
    answer = ask()
    assert answer.data["violated-policies"] == ["knowing"]
    assert left(answer)["knowing"] == 0
    # Its own word on how long to wait.
    assert answer.headers["Retry-After"] == "90000"
    assert left(ask(**{"X-Vip": "yes"})) == {"hourly": 1}


@pytest.mark.django_db
@pytest.mark.parametrize("caches", [None, database_caches()])
def test_with_the_middleware_before_it(client: Client, settings: Any, caches: Any) -> None:
    """What that has taken by address is given back to those that are refused, and to no others."""
    settings.CACHES = caches or settings.CACHES
    settings.MIDDLEWARE = ["ratelimits.middleware.RateLimitMiddleware"]
    per_address("9/h")
    there = left(client.get("/there", headers={"X-Vip": "yes"}))
    assert there == {"address": 8, "knowing": 0, "hourly": 2}
    assert left(client.get("/there", headers={"X-Vip": "yes"})) == {"address": 7, "hourly": 1}
    for _ in range(3):
        answer = client.get("/there")
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "90000")
        assert left(answer) == {"address": 7, "knowing": 0}
    assert left(client.get("/there", headers={"X-Vip": "yes"})) == {"address": 6, "hourly": 0}


def test_a_refusal_of_another_is_not_told_as_ours() -> None:
    ask = at(Trying, Plain)
    ask()
    answer = ask(**{"X-No": "yes"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    assert "violated-policies" not in answer.data


def test_a_refusal_that_is_raised_is_published() -> None:
    class Raising(UserRateThrottle):
        rate = "1/day"
        scope = "raising"

        def allow_request(self, request: Any, view: Any) -> bool:
            if not super().allow_request(request, view):
                raise Throttled(detail="Not now.")
            return True

    ask = at(Raising)
    assert ask().status_code == 200
    answer = ask()
    assert (answer.status_code, left(answer)) == (429, {"raising": 0})
    assert answer.data["detail"] == "Not now."


def test_an_instance_that_is_asked_again() -> None:
    """As tests of projects do, which have no view either."""
    throttle = Knowing()
    requests: Any = [RequestFactory().get("/", headers={"X-Vip": "yes"}) for _ in range(3)]
    for request in requests:
        request.user = None
        assert throttle.allow_request(request, None)
    del requests[2].META["HTTP_X_VIP"]
    vars(requests[2]).pop("headers", None)
    assert not throttle.allow_request(requests[2], None)
    assert (throttle.wait(), throttle.wait()) == (90_000, 90_000)
    assert "wait" not in vars(throttle)
