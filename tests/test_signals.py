"""What is told to receivers, and that nothing fails with one."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, connections
from django.dispatch import Signal
from django.http import HttpRequest
from django.test import AsyncRequestFactory
from django.urls import path
from freezegun import freeze_time
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits import limiter, rows, telling
from ratelimits.decorators import ratelimit
from ratelimits.limits import Decision
from ratelimits.models import PlanLimit, Tenant
from ratelimits.signals import nearly_used_up, refused, store_down, store_up, would_refuse
from ratelimits.stores import breaker as breakers
from ratelimits.throttling import PlanRateThrottle
from tests.doors import make_plan, per_address, request
from tests.fresh import PATIENT
from tests.servers import RedisServer, free_port
from tests.settings import redis_caches
from tests.views import KINDS, OURS, SERVERS, AnyClient, function, hello

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]
Heard = list[dict[str, Any]]


class Limited(APIView):
    throttle_classes = [PlanRateThrottle]

    def get(self, request: Request) -> Response:
        return Response({})


code = ratelimit("1/d", by="ip", name="code")
urlpatterns = [
    path("drf", Limited.as_view()),
    path("plan", ratelimit()(hello)),
    path("aplan", ratelimit()(function(hello, True))),
    path("code", code(hello)),
]


@pytest.fixture
def listen() -> Iterator[Callable[..., Heard]]:
    """Connects a receiver to a signal, and gives what it hears."""
    connected: list[tuple[Signal, Any]] = []

    def connect(signal: Signal, is_async: bool = False) -> Heard:
        heard: Heard = []

        def receiver(signal: Signal, **kwargs: Any) -> None:
            heard.append(kwargs)

        async def areceiver(signal: Signal, **kwargs: Any) -> None:
            heard.append(kwargs)

        chosen = areceiver if is_async else receiver
        signal.connect(chosen, weak=False)
        connected.append((signal, chosen))
        return heard

    yield connect
    for signal, receiver in connected:
        signal.disconnect(receiver)


@pytest.fixture
def failing() -> Iterator[Callable[[Signal], None]]:
    """Connects receivers that raise, of all kinds."""
    connected: list[tuple[Signal, Any]] = []

    def failing_receiver(**kwargs: Any) -> None:
        raise ValueError("no")

    async def afailing_receiver(**kwargs: Any) -> None:
        raise ValueError("no")

    class Failing:
        def __call__(self, **kwargs: Any) -> None:
            raise ValueError("no")

    def connect(signal: Signal) -> None:
        for receiver in (failing_receiver, afailing_receiver, Failing()):
            signal.connect(receiver, weak=False)
            connected.append((signal, receiver))

    yield connect
    for signal, receiver in connected:
        signal.disconnect(receiver)


@SERVERS
@KINDS
@pytest.mark.parametrize("url", ["/drf", "/plan", "/aplan"])
async def test_refused_at_each_door(
    caller: AnyClient, is_async: bool, url: str, settings: Any, listen: Callable[..., Heard]
) -> None:
    settings.RATELIMITS = {"TENANT": lambda request: request.headers.get("x-tenant")}
    await sync_to_async(make_plan)("api 1/d")
    heard = listen(refused, is_async)
    answers = [await caller.get(url, headers={"x-tenant": "acme"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 429, 429]
    assert len(heard) == 2
    told = heard[0]
    assert told["sender"] is Decision
    assert isinstance(told["request"], HttpRequest)
    assert told["request"].path == url
    assert (told["tenant"], told["source"]) == ("acme", "store")
    assert [outcome.name for outcome in told["decision"].violated] == ["api"]


def test_refused_by_a_limit_in_code(client: Any, listen: Callable[..., Heard]) -> None:
    """Nobody asked who the caller is."""
    heard = listen(refused)
    assert [client.get("/code").status_code for _ in range(2)] == [200, 429]
    (told,) = heard
    assert told["tenant"] is None
    assert told["decision"].violated[0].name == "code"


def test_refused_by_key_and_from_what_is_known(
    on_redis: RedisServer, settings: Any, listen: Callable[..., Heard]
) -> None:
    settings.RATELIMITS = {**PATIENT, "LOCAL_REFUSALS": 60}
    make_plan("api 1/d")
    heard = listen(refused)
    for _ in range(4):
        limiter.take("acme")
    assert [told["source"] for told in heard] == ["store", "local", "local"]
    assert {(told["tenant"], told["request"]) for told in heard} == {("acme", None)}


def test_only_takes_are_told(listen: Callable[..., Heard]) -> None:
    make_plan("api 1/d")
    everything = [listen(signal) for signal in (refused, would_refuse, nearly_used_up)]
    assert limiter.charge("acme", cost=5).allowed
    assert not limiter.peek("acme").allowed
    limiter.refund("acme", cost=1)
    limiter.reset("acme")
    assert everything == [[], [], []]


def test_refused_since_no_limits_are_known(
    settings: Any, monkeypatch: pytest.MonkeyPatch, listen: Callable[..., Heard]
) -> None:
    settings.RATELIMITS = {"STORE_FAILURE": "deny"}

    def fail() -> Any:
        raise OperationalError("disk I/O error")

    monkeypatch.setattr(rows, "load_plans", fail)
    heard = listen(refused)
    assert not limiter.take("acme").allowed
    assert [(told["source"], told["decision"].unavailable) for told in heard] == [("local", True)]


def test_what_doors_before_took_is_back_by_then(
    client: Any, settings: Any, listen: Callable[..., Heard]
) -> None:
    settings.MIDDLEWARE = [OURS]
    make_plan("api 0/d")
    per_address("9/d")
    heard = listen(refused)
    assert client.get("/drf").status_code == 429
    (told,) = heard
    remaining = {outcome.name: outcome.remaining for outcome in told["decision"].outcomes}
    assert remaining == {"api": 0, "address": 9}


@pytest.mark.parametrize("by", ["limit", "setting"])
def test_what_shadow_would_refuse(by: str, settings: Any, listen: Callable[..., Heard]) -> None:
    plan = make_plan("api 9/d")
    PlanLimit.objects.create(
        plan=plan, name="trial", rate="1/d", mode="shadow" if by == "limit" else "enforce"
    )
    settings.RATELIMITS = {"MODE": "enforce" if by == "limit" else "shadow"}
    enforced, heard = listen(refused), listen(would_refuse)
    assert all(limiter.take("acme").allowed for _ in range(3))
    assert enforced == []
    assert len(heard) == 2
    assert heard[0]["decision"].allowed
    assert [outcome.name for outcome in heard[0]["outcomes"]] == ["trial"]


def test_shadow_is_told_once_for_a_request(
    client: Any, settings: Any, listen: Callable[..., Heard]
) -> None:
    """Of a limit that two doors ask."""
    settings.MIDDLEWARE = [OURS]
    make_plan("api 9/d")
    per_address("0/d", mode="shadow")
    heard = listen(would_refuse)
    assert client.get("/drf").status_code == 200
    assert len(heard) == 1


def test_nearly_used_up(listen: Callable[..., Heard]) -> None:
    """At a tenth, once, for each bucket; and not of what is refused."""
    make_plan("api 20/d", "wide 1000/d")
    heard = listen(nearly_used_up)
    for _ in range(17):
        limiter.take("acme")
    assert heard == []
    for _ in range(10):
        limiter.take("acme")
    (told,) = heard
    assert (told["outcome"].name, told["outcome"].remaining) == ("api", 2)
    assert (told["tenant"], told["source"]) == ("acme", "store")
    limiter.take("other", cost=20)
    assert [told["tenant"] for told in heard] == ["acme", "other"]


@pytest.mark.parametrize(("rate", "seconds"), [("10/s", 60), ("10/m", 60), ("10/h", 3600)])
def test_nearly_used_up_again(
    rate: str, seconds: int, settings: Any, listen: Callable[..., Heard]
) -> None:
    """In the next window, or minute."""
    settings.RATELIMITS = {"CATALOG_TTL": 10**6}
    make_plan(f"api {rate}")
    heard = listen(nearly_used_up)
    with freeze_time("2026-03-01") as frozen:
        for passed, times in ((0, 1), (seconds - 1, 1), (2, 2)):
            frozen.tick(passed)
            limiter.reset("acme")
            limiter.take("acme", cost=9)
            assert len(heard) == times


def test_what_was_told_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "MOST", 10)
    lately = telling.Lately()
    assert all(lately.is_due(number, 60) for number in range(100))
    assert len(lately) == 10
    assert not any(lately.is_due(number, 60) for number in range(90, 100))


@SERVERS
async def test_failing_receivers_break_nothing(
    caller: AnyClient,
    failing: Callable[[Signal], None],
    listen: Callable[..., Heard],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each is named once, and the others are called."""
    await sync_to_async(make_plan)("api 1/d")
    failing(refused)
    failing(nearly_used_up)
    heard = listen(refused)
    statuses = [(await caller.get("/plan")).status_code for _ in range(4)]
    assert statuses == [200, 429, 429, 429]
    assert len(heard) == 3
    said = [record for record in caplog.records if "receiver of a signal" in record.message]
    names = ("failing_receiver", "afailing_receiver", "Failing")
    assert sorted(record.message.split()[0].rpartition(".")[2] for record in said) == sorted(names)
    assert all(record.exc_info for record in said)


async def test_an_async_receiver_that_can_not_be_called(
    listen: Callable[..., Heard], caplog: pytest.LogCaptureFixture
) -> None:
    """From an event loop, by the plain function. The take is answered, and the fault named."""
    await sync_to_async(make_plan)("api 1/d")
    await limiter.atake("acme")
    listen(refused, is_async=True)
    assert not limiter.take("acme").allowed
    assert [line for line in caplog.messages if "A signal can't be sent" in line]


async def test_async_takes_tell(listen: Callable[..., Heard]) -> None:
    await sync_to_async(make_plan)("api 1/d")
    heard = listen(refused), listen(refused, is_async=True)
    for _ in range(2):
        await limiter.atake(AsyncRequestFactory().get("/"))
    assert [len(one) for one in heard] == [1, 1]


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is made ready either."""
    monkeypatch.setattr("ratelimits.flow.tell", None)
    make_plan("api 1/d")
    assert [limiter.take(request()).allowed for _ in range(2)] == [True, False]


def until(condition: Callable[[], Any]) -> bool:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(condition())


@SERVERS
@KINDS
async def test_a_store_that_goes_and_returns(
    caller: AnyClient,
    is_async: bool,
    on_redis: RedisServer,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    listen: Callable[..., Heard],
    failing: Callable[[Signal], None],
) -> None:
    monkeypatch.setattr(breakers, "PROBE_EVERY", 0.02)
    await sync_to_async(make_plan)("api 9/d")
    settings.RATELIMITS = {**PATIENT, "STORE_FAILURE": "local"}
    down, up = listen(store_down, is_async), listen(store_up, is_async)
    for signal in (store_down, store_up):
        failing(signal)
    assert (await caller.get("/plan")).status_code == 200
    await sync_to_async(on_redis.kill)()
    for _ in range(3):
        assert (await caller.get("/plan")).status_code == 200
    assert await sync_to_async(until)(lambda: down)
    assert up == []
    await sync_to_async(on_redis.start)()
    assert await sync_to_async(until)(lambda: up)
    assert [told["fault"].split(":")[0] for told in down] == ["Redis can't count now"]
    assert [told["sender"] for told in (*down, *up)] == [breakers.Breaker] * 2


def test_nobody_waits_for_who_is_told_of_a_flip(settings: Any) -> None:
    """Not even if a receiver hangs; and what it opened is closed."""
    make_plan("api 9/d")
    settings.CACHES = redis_caches(f"redis://127.0.0.1:{free_port()}/0")
    hold = threading.Event()
    opened: list[Any] = []

    def hanging(**kwargs: Any) -> None:
        hold.wait(20)
        Tenant.objects.count()
        opened.append(connections["default"].connection)

    store_down.connect(hanging)
    try:
        started = time.monotonic()
        assert limiter.take("acme").allowed
        assert time.monotonic() - started < 10
        hold.set()
        assert until(lambda: opened)
        assert until(lambda: "ratelimits-signals" not in {t.name for t in threading.enumerate()})
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            opened[0].execute("SELECT 1")
    finally:
        hold.set()
        store_down.disconnect(hanging)
