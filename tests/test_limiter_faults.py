"""The path while the store is away: requests go on, and are told no limit that is none."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpResponse
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits import limiter
from ratelimits.decorators import ratelimit
from ratelimits.exceptions import StoreUnavailable
from ratelimits.models import Plan, PlanLimit
from ratelimits.stores import breaker as breakers
from ratelimits.stores import get_store
from ratelimits.throttling import PlanRateThrottle
from tests.doors import is_silent, left, make_plan, per_address, problem
from tests.servers import RedisServer, free_port
from tests.settings import redis_caches
from tests.views import KINDS, SERVERS, AnyClient, function, hello

OURS = "ratelimits.middleware.RateLimitMiddleware"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


class Limited(APIView):
    throttle_classes = [PlanRateThrottle]
    authentication_classes: Any = []

    def get(self, request: Request) -> Response:
        return Response({})


urlpatterns = [
    path("drf", Limited.as_view()),
    path("plan", ratelimit()(hello)),
    path("aplan", ratelimit()(function(hello, True))),
    path("code", ratelimit("2/d", by="ip", name="code")(hello)),
    path("open", hello),
]
DOORS = ["/drf", "/plan", "/aplan", "/code", "/open"]

BACKENDS = {
    "closed port": lambda port: redis_caches(f"redis://127.0.0.1:{port}/0"),
    "swallowed": lambda port: redis_caches(f"redis://127.0.0.1:{port}/0", IGNORE_EXCEPTIONS=True),
    "Django's own": lambda port: redis_caches(
        f"redis://127.0.0.1:{port}/0", "django.core.cache.backends.redis.RedisCache"
    ),
    "no store fits": lambda port: {
        "default": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache"}
        | {"LOCATION": "/nowhere"}
    },
    "no such alias": lambda port: {
        "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    },
}


@pytest.fixture(params=BACKENDS)
def away(request: pytest.FixtureRequest, settings: Any) -> Any:
    """A store that does not answer, and limits to be kept nevertheless."""
    make_plan("api 2/d")
    settings.MIDDLEWARE = [OURS]
    settings.CACHES = BACKENDS[request.param](free_port())
    options = {"CACHE": "elsewhere"} if request.param == "no such alias" else {}

    def configure(**more: Any) -> None:
        settings.RATELIMITS = {**options, **more}

    configure()
    return configure


@SERVERS
@pytest.mark.parametrize("url", ["/drf", "/plan", "/aplan", "/code"])
async def test_local_counts_in_the_process(caller: AnyClient, away: Any, url: str) -> None:
    caller = AnyClient(caller.is_async)
    answers = [await caller.get(url) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [list(left(answer).values()) for answer in answers] == [[1], [0], [0]]


@SERVERS
@pytest.mark.parametrize("url", DOORS)
async def test_allow_passes_and_publishes_nothing(caller: AnyClient, away: Any, url: str) -> None:
    away(STORE_FAILURE="allow")
    caller = AnyClient(caller.is_async)
    answers = [await caller.get(url) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert all(map(is_silent, answers))


@SERVERS
@pytest.mark.parametrize("url", DOORS)
async def test_deny_is_a_503_of_no_limit(caller: AnyClient, away: Any, url: str) -> None:
    """Case 37: never a full bucket, never 500, never a 429 that names a limit."""
    away(STORE_FAILURE="deny")
    await sync_to_async(per_address)("9/d")
    caller = AnyClient(caller.is_async)
    response = await caller.get(url)
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1
    body = problem(response)
    assert body["type"].endswith("#temporary-reduced-capacity")
    assert body["violated-policies"] == []
    assert body["retryable"] is True
    assert is_silent(response)


def test_a_limit_may_say_otherwise(away: Any) -> None:
    """One of a plan that is let pass is denied for one limit of its own."""
    away(STORE_FAILURE="allow")
    assert limiter.take("acme").allowed
    PlanLimit.objects.create(
        plan=Plan.objects.get(), name="pay", rate="9/d", scope="pay", on_store_failure="deny"
    )
    assert limiter.take("acme").allowed
    denied = limiter.take("acme", scope="pay")
    assert (denied.allowed, denied.status) == (False, 503)


def test_peek_charge_and_refund_go_on(away: Any) -> None:
    for decision in (limiter.peek("acme"), limiter.charge("acme", cost=9)):
        assert decision.allowed
    assert not limiter.take("acme").allowed
    limiter.refund("acme", cost=1)
    assert limiter.take("acme").allowed


def test_reset_says_that_it_can_not(away: Any) -> None:
    with pytest.raises(StoreUnavailable):
        limiter.reset("acme")


@pytest.mark.parametrize("failure", ["local", "allow", "deny"])
@SERVERS
@KINDS
async def test_limits_that_can_not_be_read(
    failure: str, caller: AnyClient, is_async: bool, settings: Any, caplog: Any
) -> None:
    """Rule 24: the database is away and nothing known; logged once, never a 500."""
    settings.MIDDLEWARE = [OURS]
    settings.RATELIMITS = {"STORE_FAILURE": failure}
    caller = AnyClient(caller.is_async)

    def rename(old: str, new: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {old} RENAME TO {new}")

    await sync_to_async(rename)("ratelimits_plan", "elsewhere")
    try:
        answers = [await caller.get("/aplan" if is_async else "/drf") for _ in range(2)]
    finally:
        await sync_to_async(rename)("elsewhere", "ratelimits_plan")
    expected = 503 if failure == "deny" else 200
    assert [answer.status_code for answer in answers] == [expected] * 2
    if failure == "deny":
        assert problem(answers[0])["retryable"] is True
        waits = {answer.headers["Retry-After"] for answer in answers}
        # A second, and up to one more.
        assert waits == {"2"}
    said = [line for line in caplog.messages if "can't be read from the database" in line]
    assert len(said) == 1


def test_the_last_known_limits_stay(settings: Any) -> None:
    make_plan("api 2/d")
    limiter.take("acme")
    PlanLimit.objects.all()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE ratelimits_plan RENAME TO elsewhere")
    try:
        from ratelimits import edits

        edits.shared.forget_plans("next")
        assert [limiter.take("acme").allowed for _ in range(2)] == [True, False]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO ratelimits_plan")


@pytest.fixture
def probing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(breakers, "PROBE_EVERY", 0.05)
    yield


def back() -> bool:
    store: Any = get_store()
    deadline = time.monotonic() + 10
    while store.breaker.is_open and time.monotonic() < deadline:
        time.sleep(0.01)
    return not store.breaker.is_open


@SERVERS
async def test_the_breaker_opens_and_closes(
    caller: AnyClient,
    redis_server: RedisServer,
    settings: Any,
    probing: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One line when the store goes, one when it is back, and it counts there again.

    From the level that was last seen; what it let pass is charged to the store, which is empty.
    """
    await sync_to_async(make_plan)("api 5/d")
    settings.CACHES = redis_caches(redis_server.url)
    # A server on a busy machine is not away.
    settings.RATELIMITS = {"STORE_TIMEOUT": 5}
    caller = AnyClient(caller.is_async)
    assert left(await caller.get("/drf")) == {"api": 4}
    await sync_to_async(redis_server.kill)()
    caplog.clear()
    assert [left(await caller.get("/drf"))["api"] for _ in range(2)] == [3, 2]
    await sync_to_async(redis_server.start)()
    assert await sync_to_async(back)()
    assert left(await caller.get("/drf")) == {"api": 2}
    said = [line for line in caplog.messages if "store of the rate limits" in line]
    assert [line.split(":")[0] for line in said] == [
        "The store of the rate limits is away",
        "The store of the rate limits is back.",
    ]


def test_nobody_waits_while_it_is_away(settings: Any) -> None:
    """Not even for a server that takes the call and does not answer."""
    make_plan("api 1000/d")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.CACHES = redis_caches(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        limiter.take("acme")
        started = time.perf_counter()
        for _ in range(200):
            assert limiter.take("acme").allowed
        # Ten seconds, if each waited as the first one did.
        assert time.perf_counter() - started < 5


def test_a_dummy_cache_counts_nothing(settings: Any) -> None:
    """Case 28."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    settings.MIDDLEWARE = [OURS]
    make_plan("api 1/d")
    client = AnyClient(False).client
    for url in DOORS:
        answers: list[HttpResponse] = [client.get(url) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200] * 3
        assert all(map(is_silent, answers))
