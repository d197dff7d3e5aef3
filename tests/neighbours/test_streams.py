"""Streams: the fields are there before the first chunk, and no chunk waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, StreamingHttpResponse
from django.test import RequestFactory
from django.urls import path
from rest_framework.views import APIView

from ratelimits.decorators import ratelimit
from ratelimits.limiter import peek
from ratelimits.throttling import PlanRateThrottle
from tests.doors import make_plan
from tests.neighbours.page import sample

OURS = "ratelimits.middleware.RateLimitMiddleware"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

made: list[bytes] = []
heard: list[asyncio.Event] = []


async def completed(request: HttpRequest) -> AsyncIterator[tuple[bytes, int]]:
    for number in range(3):
        # Whoever holds a chunk back waits for ever.
        await heard[number].wait()
        made.append(b"%d" % number)
        yield made[-1], 5


completions = sample("def completions", completed=completed)["completions"]


def stream(request: HttpRequest) -> StreamingHttpResponse:
    def chunks() -> Iterator[bytes]:
        for number in range(3):
            made.append(b"%d" % number)
            yield made[-1]

    return StreamingHttpResponse(chunks())


class OfDRF(APIView):
    throttle_classes = [PlanRateThrottle]
    throttle_scope = "completions"

    def get(self, request: Any) -> StreamingHttpResponse:
        return stream(request)


urlpatterns = [
    path("stream", completions),
    path("plain", ratelimit(scope="completions")(stream)),
    path("drf", OfDRF.as_view()),
]


@pytest.fixture(autouse=True)
def plan(db: None, settings: Any) -> None:
    made.clear()
    heard[:] = [asyncio.Event() for _ in range(3)]
    make_plan("api 10/d", "tokens 20/d completions")
    settings.RATELIMITS = {"TENANT": "tests.neighbours.test_streams.acme"}


def acme(request: Any) -> str:
    return "acme"


MIDDLEWARE = pytest.mark.parametrize("middleware", [[OURS], []], ids=["middleware", "alone"])


@MIDDLEWARE
async def test_asgi(middleware: list[str], settings: Any) -> None:
    """What the server is given to send, one after the other."""
    settings.MIDDLEWARE = middleware
    sent: asyncio.Queue[Any] = asyncio.Queue()
    scope = {"type": "http", "method": "GET", "path": "/stream", "headers": []}
    asking = [{"type": "http.request"}]

    async def receive() -> Any:
        return asking.pop() if asking else await asyncio.Future()

    serving = asyncio.create_task(ASGIHandler()(scope, receive, sent.put))
    start = await asyncio.wait_for(sent.get(), 30)
    assert made == []
    assert start["type"] == "http.response.start"
    fields = {name.lower(): value for name, value in start["headers"]}
    assert fields[b"ratelimit"].startswith(b'"api";r=9;')
    assert b'"tokens";r=19;' in fields[b"ratelimit"]
    for number, event in enumerate(heard):
        event.set()
        chunk = await asyncio.wait_for(sent.get(), 30)
        assert chunk["body"] == b"%d" % number
        assert len(made) == number + 1
    await asyncio.wait_for(serving, 30)
    left = await sync_to_async(peek)("acme", scope="completions")
    assert {each.name: each.remaining for each in left.outcomes} == {"api": 0, "tokens": 4}


@MIDDLEWARE
@pytest.mark.parametrize("url", ["/plain", "/drf"])
def test_wsgi(middleware: list[str], url: str, settings: Any) -> None:
    settings.MIDDLEWARE = middleware
    began: list[tuple[str, dict[str, str]]] = []

    def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
        began.append((status, dict(headers)))

    body = iter(WSGIHandler()(RequestFactory().get(url).environ, start))
    assert made == []
    ((status, fields),) = began
    assert status == "200 OK"
    assert '"tokens";r=19;' in fields["RateLimit"]
    for number in range(3):
        assert next(body) == b"%d" % number
        assert len(made) == number + 1
