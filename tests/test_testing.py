from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client, override_settings
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.limiter import take
from ratelimits.testing import fresh_counts
from ratelimits.throttling import PlanRateThrottle, UserRateThrottle
from tests.doors import make_plan, statuses

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__), pytest.mark.usefixtures("still")]


class Hourly(UserRateThrottle):
    rate = "1/hour"


class View(APIView):
    throttle_classes = [PlanRateThrottle]

    def get(self, request: Any) -> Response:
        return Response({})


class DropIn(View):
    throttle_classes = [Hourly]


urlpatterns = [path("plan", View.as_view()), path("drop-in", DropIn.as_view())]
URLS = pytest.mark.parametrize("url", ["/plan", "/drop-in"])


def both_orders(client: Client, url: str) -> None:
    """Case 70: two tests of one request each, in whichever order."""

    @fresh_counts()
    def one() -> None:
        assert client.get(url).status_code == 200

    def another() -> None:
        with fresh_counts():
            assert statuses(lambda: client.get(url), 2) == [200, 429]

    for test in (one, another, another, one):
        test()


@URLS
def test_tests_do_not_meet_in_memory(client: Client, url: str) -> None:
    make_plan("api 1/d")
    both_orders(client, url)


@URLS
def test_tests_do_not_meet_on_redis(client: Client, on_redis: Any, url: str) -> None:
    make_plan("api 1/d")
    cache.set("session", "kept")
    both_orders(client, url)
    assert cache.get("session") == "kept"


def test_what_was_counted_before_is_there_again() -> None:
    make_plan("api 1/d")
    assert take("acme").allowed
    with fresh_counts():
        assert take("acme").allowed
    assert not take("acme").allowed


def test_the_settings_stay_as_they_are(settings: Any) -> None:
    settings.RATELIMITS = {"MODE": "shadow"}
    make_plan("api 1/d")
    with fresh_counts():
        assert [take("acme").allowed for _ in range(2)] == [True, True]
    assert settings.RATELIMITS == {"MODE": "shadow"}


@URLS
def test_the_switch_for_tests_of_something_else(client: Client, url: str) -> None:
    """Case 70, with the switch."""
    make_plan("api 1/d")
    with override_settings(RATELIMITS={"MODE": "off"}):
        assert statuses(lambda: client.get(url), 3) == [200] * 3
    assert statuses(lambda: client.get(url), 2) == [200, 429]
