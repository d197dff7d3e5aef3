"""Callers who were refused and keep trying: what they cost the store."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits import limiter
from ratelimits.stores.guarded import GuardedStore
from ratelimits.throttling import PlanRateThrottle
from tests.doors import left, make_plan, per_address
from tests.refusals.watching import commands
from tests.servers import RedisServer
from tests.views import OURS
from tests.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


class Limited(APIView):
    throttle_classes = [PlanRateThrottle]

    def get(self, request: Request) -> Response:
        return Response({})


urlpatterns = [path("drf", Limited.as_view())]


@pytest.fixture(autouse=True)
def _by_default(guarded: GuardedStore, settings: Any) -> None:
    settings.RATELIMITS = {"STORE_TIMEOUT": 20, "WORKERS": 1}


def asked_in_a_storm(server: RedisServer, call: Callable[[], bool], times: int) -> float:
    """How often the store was asked, for each quarter of a second that it took. All are refused."""
    before, started = commands(server), time.monotonic()
    assert not any(call() for _ in range(times))
    quarters = (time.monotonic() - started) / 0.25
    return (commands(server) - before) / (quarters + 1)


def test_a_tenant(redis_server: RedisServer) -> None:
    """50,000 calls are four commands a second, whatever the machine makes of them."""
    make_plan("api 5/d", "minute 100/m")
    for _ in range(5):
        assert limiter.take("acme").allowed
    asked = asked_in_a_storm(redis_server, lambda: limiter.take("acme").allowed, 50_000)
    assert asked <= 1


def test_callers_of_a_view(redis_server: RedisServer) -> None:
    make_plan("api 5/d")
    per_address("1000/m")
    client = Client()
    for _ in range(5):
        assert client.get("/drf").status_code == 200
    asked = asked_in_a_storm(
        redis_server, lambda: client.get("/drf").status_code != 429, times=1000
    )
    assert asked <= 1


def test_callers_whom_the_middleware_refuses(redis_server: RedisServer, settings: Any) -> None:
    settings.MIDDLEWARE = [OURS]
    make_plan("api 100/d")
    per_address("5/d")
    client = Client()
    for _ in range(5):
        assert client.get("/drf").status_code == 200
    asked = asked_in_a_storm(
        redis_server, lambda: client.get("/drf").status_code != 429, times=1000
    )
    assert asked <= 1


def test_callers_whom_the_second_door_refuses(redis_server: RedisServer, settings: Any) -> None:
    settings.MIDDLEWARE = [OURS]
    make_plan("api 5/d")
    per_address("1000/d")
    client = Client()
    for _ in range(5):
        assert client.get("/drf").status_code == 200
    asked = asked_in_a_storm(
        redis_server, lambda: client.get("/drf").status_code != 429, times=1000
    )
    # It is looked at again, and nothing is taken for long.
    assert asked <= 5
    # A refusal from what is known tells what was left then, before this was given back.
    wait_until(lambda: left(client.get("/drf")) == {"address": 995, "api": 0})
