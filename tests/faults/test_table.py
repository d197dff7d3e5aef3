"""Each fault of Redis, by each way to go on without it: no view fails, and no false refusals."""

from __future__ import annotations

import gc
import logging
import time
from typing import Any

import pytest
from django.test import Client
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.stores import breaker as breakers
from ratelimits.stores import forget_stores, get_store
from ratelimits.throttling import PlanRateThrottle
from tests.doors import is_silent, left, make_plan, problem
from tests.servers import RedisServer
from tests.waiting import until_nobody_probes

from .faults import FAULTS, Fault
from .machine import close_the_store
from .strangers import STRANGERS

PROBES = 0.02
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


class Limited(APIView):
    throttle_classes = [PlanRateThrottle]
    authentication_classes: Any = []

    def get(self, request: Request) -> Response:
        return Response({})


urlpatterns = [path("", Limited.as_view())]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakers, "PROBE_EVERY", PROBES)


def is_away() -> bool:
    store: Any = get_store()
    return bool(store.breaker.is_open)


def ask(times: int) -> list[Any]:
    client = Client(raise_request_exception=True)
    return [client.get("/") for _ in range(times)]


def local() -> None:
    answers = ask(4)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert [left(answer)["api"] for answer in answers] == [2, 1, 0, 0]
    # What was counted stays, however often the store is tried meanwhile.
    end = time.monotonic() + 6 * PROBES
    while time.monotonic() < end:
        assert ask(1)[0].status_code == 429
    assert is_away()


def allow() -> None:
    answers = ask(5)
    assert [answer.status_code for answer in answers] == [200] * 5
    assert all(map(is_silent, answers))


def deny() -> None:
    for answer in ask(3):
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert problem(answer)["type"].endswith("#temporary-reduced-capacity")
        assert problem(answer)["violated-policies"] == []
        assert is_silent(answer)


WAYS = {"local": local, "allow": allow, "deny": deny}


@pytest.mark.parametrize("name", [*FAULTS, *STRANGERS])
def test_every_fault_in_every_way(
    name: str, server: RedisServer, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    # A store that an earlier test left away would be told of among ours when it is found.
    gc.collect()
    until_nobody_probes()
    make_plan("api 3/d")
    fault: Fault = {**FAULTS, **STRANGERS}[name]
    with fault(server) as caches:
        settings.CACHES = caches
        for way, goes_on in WAYS.items():
            settings.RATELIMITS = {"STORE_FAILURE": way, "LOCAL_REFUSALS": 0}
            caplog.clear()
            goes_on()
            assert is_away()
            ours = [record for record in caplog.records if record.name == "ratelimits"]
            assert [record.levelno for record in ours] == [logging.ERROR], ours
            if way != "deny":
                close_the_store()
                forget_stores()
    if name in FAULTS:
        counts_again(server)
    close_the_store()


def counts_again(server: RedisServer) -> None:
    deadline = time.monotonic() + 10
    while is_away():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    server.flush()
    # On a busy machine it may be away again for a moment.
    while all(b"probe" in key for key in server.client().scan_iter()):
        assert time.monotonic() < deadline
        ask(1)
