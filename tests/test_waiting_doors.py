"""While the second door is known to refuse, the first one takes later, and no less exactly."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.urls import path
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits import flow, limiter, storms
from ratelimits.decorators import exempt, ratelimit
from ratelimits.limits import Decision
from ratelimits.signals import refused
from ratelimits.throttling import PlanRateThrottle
from tests.doors import left, make_plan, per_address, problem, request
from tests.fresh import PATIENT, forget_everything, the_redis_store
from tests.refusals.watching import commands
from tests.servers import RedisServer
from tests.views import CHAINS, OURS, SERVERS, AnyClient

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

ran: list[str] = []


def tenant(request: Any) -> str | None:
    found: str | None = request.headers.get("x-tenant")
    return found


def body(request: Any) -> HttpResponse:
    ran.append(request.path)
    return HttpResponse()


class Authenticated(BasePermission):
    """Stands for authentication that fails before anything is throttled."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if "x-guess" in request.headers:
            raise AuthenticationFailed
        return True


class Limited(APIView):
    throttle_classes: Any = [PlanRateThrottle]
    permission_classes = [Authenticated]

    def get(self, request: Request) -> Response:
        ran.append(request.path)
        return Response({})


class Sparing(PlanRateThrottle):
    def allow_request(self, request: Request, view: Any) -> bool:
        return True


class Spared(Limited):
    throttle_classes = [Sparing]


class WithoutThrottles(Limited):
    def get_throttles(self) -> list[Any]:
        return []


class PerAction(Limited):
    @ratelimit("9/d", by="user", name="action")
    def get(self, request: Request) -> Response:
        ran.append(request.path)
        return Response({})


@ratelimit()
async def adecorated(request: HttpRequest) -> HttpResponse:
    return body(request)


urlpatterns = [
    path("drf", Limited.as_view()),
    path("decorated", ratelimit()(body)),
    path("adecorated", adecorated),
    path("protected", body),
    path("code", ratelimit("7/d", by="header:x-tenant", name="code")(body)),
    path("posted", ratelimit("1/d", methods=["POST"], name="posted")(body)),
    path("open", body),
    path("exempt", exempt(body)),
    path("sparing", Spared.as_view()),
    path("without", WithoutThrottles.as_view()),
    path("action", PerAction.as_view()),
]
LIMITED = ["/drf", "/decorated", "/adecorated", "/protected"]
BARE = ["/open", "/code", "/posted", "/sparing", "/without", "/action"]


@pytest.fixture(autouse=True)
def _two_doors(on_redis: RedisServer, settings: Any) -> None:
    settings.MIDDLEWARE = [OURS]
    settings.RATELIMITS = {
        **PATIENT,
        "TENANT": tenant,
        "PROTECT": ["/protected"],
        "LOCAL_REFUSALS": 60,
    }
    ran.clear()


def used() -> int:
    """How many units the address of the tests has used."""
    (outcome,) = (o for o in limiter.peek(request(), cost=0).outcomes if o.name == "address")
    return outcome.limit.capacity - outcome.remaining


async def storm(caller: AnyClient, url: str = "/drf") -> None:
    """Until the second door is known to refuse a tenant, and the first one waits."""
    for _ in range(4):
        await caller.get(url, headers={"x-tenant": "noisy"})
    assert len(storms.storms) == 1


@SERVERS
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("url", LIMITED)
async def test_a_storm_asks_nothing_and_takes_nothing(
    caller: AnyClient, chain: str, url: str, settings: Any, on_redis: RedisServer
) -> None:
    settings.MIDDLEWARE = CHAINS[chain]
    caller = AnyClient(caller.is_async)
    await sync_to_async(make_plan)("api 1/d")
    await sync_to_async(per_address)("9/d")
    await storm(caller, url)
    before = await sync_to_async(commands)(on_redis)
    for _ in range(5):
        answer = await caller.get(url, headers={"x-tenant": "noisy"})
        assert problem(answer)["violated-policies"] == ["api"]
        # As it was when the plan was asked: the address had lent one unit then.
        assert left(answer) == {"address": 7, "api": 0}
    assert await sync_to_async(commands)(on_redis) == before
    assert await sync_to_async(used)() == 1
    assert ran == [url]


@SERVERS
@pytest.mark.parametrize("url", LIMITED)
async def test_others_at_the_address_are_counted_by_both(caller: AnyClient, url: str) -> None:
    caller = AnyClient(caller.is_async)
    await sync_to_async(make_plan)("api 1/d")
    await sync_to_async(per_address)("3/d")
    await storm(caller)
    ran.clear()
    answers = [await caller.get(url, headers={"x-tenant": f"{n}"}) for n in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert left(answers[0]) == {"api": 0, "address": 1}
    assert problem(answers[2])["violated-policies"] == ["address"]
    assert ran == [url] * 2
    # The plan of who was refused by the address has its unit back.
    decision = await limiter.apeek("3")
    assert decision.outcomes[0].remaining == 1


def test_each_refusal_is_told_once(client: Any) -> None:
    """Whichever door it is that refuses in the end."""
    make_plan("api 1/d")
    per_address("2/d")
    told: list[list[str]] = []

    def receiver(decision: Decision, **kwargs: Any) -> None:
        told.append([outcome.name for outcome in decision.violated])

    for _ in range(4):
        client.get("/drf", headers={"x-tenant": "noisy"})
    refused.connect(receiver)
    try:
        for name in ("noisy", "a", "b"):
            client.get("/decorated", headers={"x-tenant": name})
    finally:
        refused.disconnect(receiver)
    assert told == [["api"], ["address"]]


@SERVERS
@pytest.mark.parametrize("url", BARE)
async def test_no_view_runs_before_the_address_was_asked(caller: AnyClient, url: str) -> None:
    """Also one whose door lets a request past."""
    caller = AnyClient(caller.is_async)
    await sync_to_async(make_plan)("api 1/d")
    await sync_to_async(per_address)("2/d")
    await storm(caller)
    ran.clear()
    answers = [await caller.get(url, headers={"x-tenant": "quiet"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 429, 429]
    assert ran == [url]


@SERVERS
@pytest.mark.parametrize(
    ("url", "status"), [("/drf", 401), ("/missing", 404), ("/interrupted", 302)]
)
async def test_answers_without_a_view_count_too(
    caller: AnyClient, url: str, status: int, settings: Any
) -> None:
    """A guess at a credential that is one too many is not told if it was right."""
    settings.MIDDLEWARE = [OURS, f"{__name__}.interrupting"]
    caller = AnyClient(caller.is_async)
    await sync_to_async(make_plan)("api 1/d")
    await sync_to_async(per_address)("3/d")
    await storm(caller)
    headers = {"x-tenant": "quiet", "x-guess": "1"}
    answers = [await caller.get(url, headers=headers) for _ in range(4)]
    denied = 403 if status == 401 else status
    assert [answer.status_code for answer in answers] == [denied, denied, 429, 429]
    assert len(storms.storms) == 0


def interrupting(get_response: Callable[[HttpRequest], Any]) -> Any:
    def middleware(request: HttpRequest) -> Any:
        if request.path == "/interrupted":
            return HttpResponse(status=302, headers={"Location": "/"})
        return get_response(request)

    return middleware


async def test_exempt_views_take_nothing(client: Any) -> None:
    caller = AnyClient(False)
    await sync_to_async(make_plan)("api 1/d")
    await sync_to_async(per_address)("9/d")
    await storm(caller)
    assert (await caller.get("/exempt")).status_code == 200
    assert await sync_to_async(used)() == 1


def test_addresses_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storms, "MOST", 10)
    kept = storms.Storms()
    for number in range(100):
        kept.begin(str(number))
    assert len(kept) == 10
    assert [kept.is_on(str(number)) for number in (0, 89, 90, 99)] == [False, False, True, True]


def history(client: Any, seed: int) -> tuple[list[Any], list[str]]:
    """What random requests get, and what is left after each."""
    rng, seen = random.Random(seed), []
    ran.clear()
    for _ in range(80):
        if rng.random() < 0.1:
            limiter.refund(rng.choice(["a", "b"]), cost=1)
        headers = {"x-tenant": rng.choice(["a", "a", "a", "b"])}
        if rng.random() < 0.1:
            headers["x-guess"] = "1"
        url = rng.choice([*LIMITED * 4, *BARE, "/exempt", "/missing"])
        status = client.get(url, headers=headers).status_code
        levels = [limiter.peek(key, cost=0).outcomes[0].remaining for key in ("a", "b")]
        seen.append((url, headers, status, levels, used()))
    return seen, list(ran)


@pytest.mark.parametrize("seed", range(5))
def test_it_makes_no_difference(
    seed: int, client: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for what the store is asked."""
    make_plan("api 2/d")
    per_address(f"{20 + 5 * seed}/d")
    waited = []
    waiting = flow._waiting

    def count(*args: Any) -> Any:
        waited.append(1)
        return waiting(*args)

    monkeypatch.setattr(flow, "_waiting", count)
    with_storms = history(client, seed)
    assert len(waited) > 3
    the_redis_store().client.flushall()
    settings.RATELIMITS = {**settings.RATELIMITS, "LOCAL_REFUSALS": 0}
    forget_everything()
    assert history(client, seed) == with_storms
    assert len(storms.storms) == 0
