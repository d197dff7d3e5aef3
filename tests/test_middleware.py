from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import SimpleTemplateResponse
from django.urls import path
from rest_framework.authentication import BasicAuthentication
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.decorators import exempt, ratelimit
from ratelimits.exceptions import RateLimited
from ratelimits.limiter import atake, take
from ratelimits.throttling import PlanRateThrottle
from tests.doors import (
    PREFLIGHT,
    for_everyone,
    is_silent,
    left,
    make_plan,
    per_address,
    policies,
    problem,
)
from tests.views import CHAINS, SERVERS, AnyClient, hello

pytestmark = [
    pytest.mark.usefixtures("still"),
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls(__name__),
    pytest.mark.filterwarnings("error"),
]


@pytest.fixture(autouse=True, params=CHAINS)
def chain(request: pytest.FixtureRequest, settings: Any) -> None:
    settings.MIDDLEWARE = CHAINS[request.param]


async def ahello(request: HttpRequest) -> HttpResponse:
    return HttpResponse("hello")


class Limited(APIView):
    throttle_classes = [PlanRateThrottle]

    def get(self, request: Request) -> Response:
        return Response({})


class Costly(Limited):
    throttle_cost = 5


class Private(APIView):
    authentication_classes = [BasicAuthentication]
    permission_classes = [IsAuthenticated]


def deep(key: str | None = None) -> Any:
    def view(request: HttpRequest, *args: Any) -> HttpResponse:
        decision = take(key or request, scope="deep")
        if not decision.allowed:
            raise RateLimited(decision)
        return HttpResponse("deep")

    return view


async def adeep(request: HttpRequest) -> HttpResponse:
    decision = await atake(request, scope="deep")
    if not decision.allowed:
        raise RateLimited(decision)
    return HttpResponse("deep")


class DeepInTemplate(SimpleTemplateResponse):
    """What a template calls is run after the view has returned."""

    request: Any = None

    @property
    def rendered_content(self) -> str:
        return deep()(self.request).content.decode()


def deep_in_template(request: HttpRequest) -> HttpResponse:
    response = DeepInTemplate("")
    response.request = request
    return response


class DeepInDrf(APIView):
    def get(self, request: Request) -> Any:
        return deep()(request)


def failing(request: HttpRequest, error: str) -> HttpResponse:
    raise {"404": Http404, "403": PermissionDenied, "500": ValueError}[error]()


urlpatterns = [
    path("open", hello),
    path("aopen", ahello),
    path("failing/<error>", ratelimit("9/d", by="ip", name="code")(failing)),
    path("drf", Limited.as_view()),
    path("costly", Costly.as_view()),
    path("private", Private.as_view()),
    path("healthz", exempt(hello)),
    path("protected", hello),
    path("deep", deep()),
    path("adeep", adeep),
    path("deep-key", deep("acme")),
    path("deep-drf", DeepInDrf.as_view()),
    path("deep-template", deep_in_template),
    path("deep-decorated", ratelimit("9/d", by="ip", name="code")(deep("acme"))),
]


def plan(*limits: str) -> Any:
    return sync_to_async(make_plan)(*limits)


def address_limit(rate: str, **options: Any) -> Any:
    return sync_to_async(per_address)(rate, **options)


@SERVERS
@pytest.mark.parametrize("url", ["/open", "/aopen", "/drf", "/nowhere", "/private"])
async def test_limits_per_address_come_before_everything(caller: AnyClient, url: str) -> None:
    """Also for what does not exist, and what nobody may see."""
    caller = AnyClient(caller.is_async)
    await address_limit("2/d")
    answers = [await caller.get(url) for _ in range(3)]
    assert [left(answer)["address"] for answer in answers] == [1, 0, 0]
    assert answers[0].status_code == answers[1].status_code != 429
    body = problem(answers[2])
    assert body["violated-policies"] == ["address"]
    assert body["detail"] == "Limit is 2 requests per day for this address."
    assert answers[2].headers["Retry-After"] == "43200"


@SERVERS
async def test_guesses_at_credentials_are_limited(caller: AnyClient) -> None:
    """Case 59."""
    caller = AnyClient(caller.is_async)
    await address_limit("5/d")
    credentials = {"Authorization": "Basic d3Jvbmc6d3Jvbmc="}
    answers = [await caller.get("/private", headers=credentials) for _ in range(10)]
    assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 5


@SERVERS
@pytest.mark.parametrize("error", ["404", "403", "500"])
async def test_fields_on_errors_under_a_decorator(caller: AnyClient, error: str) -> None:
    """Case 50."""
    caller = AnyClient(caller.is_async)
    response = await caller.get(f"/failing/{error}")
    assert response.status_code == int(error)
    assert left(response) == {"code": 8}


@SERVERS
async def test_limits_of_two_doors_are_told_together(caller: AnyClient) -> None:
    """Rule 10: the one per address is counted once, at the highest cost."""
    caller = AnyClient(caller.is_async)
    await plan("api 100/d")
    await address_limit("20/d")
    assert left(await caller.get("/drf")) == {"address": 19, "api": 99}
    assert left(await caller.get("/costly")) == {"address": 14, "api": 94}


@SERVERS
async def test_a_refused_request_takes_nothing_also_at_the_door(caller: AnyClient) -> None:
    """Rules 1 and 5: the door's one unit is given back, or else the wait would be a lie."""
    caller = AnyClient(caller.is_async)
    await plan("api 100/d")
    await address_limit("7/d")
    assert left(await caller.get("/costly")) == {"address": 2, "api": 95}
    for _ in range(3):
        response = await caller.get("/costly")
        body = problem(response)
        assert body["violated-policies"] == ["address"]
        assert (body["cost"], body["remaining"]) == (5, 2)
        # Three more units, not two or four.
        unit = 86400 / 7
        assert 3 * unit - 600 < int(response.headers["Retry-After"]) <= 3 * unit + 1
        assert left(response) == {"address": 2, "api": 95}


@SERVERS
async def test_a_cost_that_can_never_pass_says_so_behind_the_door(caller: AnyClient) -> None:
    caller = AnyClient(caller.is_async)
    await plan("api 100/d")
    await address_limit("4/d")
    response = await caller.get("/costly")
    assert problem(response)["retryable"] is False
    assert "Retry-After" not in response.headers
    assert left(response) == {"address": 4, "api": 100}


@SERVERS
async def test_exempt_views(caller: AnyClient, settings: Any) -> None:
    """Case 68: whatever is limited, and whatever is down."""
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"PROTECT": ["/"], "STORE_FAILURE": "deny"}
    await plan("api 0/d")
    await address_limit("0/d")
    assert (await caller.get("/open")).status_code == 429
    broken = {"BACKEND": "django.core.cache.backends.redis.RedisCache"}
    settings.CACHES = {"default": {**broken, "LOCATION": "redis://127.0.0.1:1/0"}}
    assert (await caller.get("/open")).status_code == 503
    for _ in range(20):
        response = await caller.get("/healthz")
        assert response.status_code == 200
        assert is_silent(response)


@SERVERS
@pytest.mark.parametrize("url", ["/deep", "/adeep", "/deep-key", "/deep-drf", "/deep-template"])
async def test_refusals_from_deep_inside(caller: AnyClient, url: str) -> None:
    caller = AnyClient(caller.is_async)
    await plan("api 9/d", "deep 1/d deep")
    await address_limit("9/d")
    first, second = await caller.get(url), await caller.get(url)
    assert first.status_code == 200
    assert problem(second)["violated-policies"] == ["deep"]
    assert second.headers["Retry-After"] == "86400"
    assert left(second)["deep"] == 0
    # What was counted at the door is told as well.
    assert left(second)["address"] == 7


@SERVERS
async def test_a_refusal_from_deep_inside_beside_a_decorator(caller: AnyClient) -> None:
    caller = AnyClient(caller.is_async)
    await plan("deep 1/d deep")
    await caller.get("/deep-decorated")
    assert left(await caller.get("/deep-decorated")) == {"code": 7, "deep": 0}


@SERVERS
async def test_service_limit_for_everyone(caller: AnyClient) -> None:
    """Rule 17: each caller is told another moment, none an earlier one."""
    caller = AnyClient(caller.is_async)
    await plan("api 1000/d")
    await sync_to_async(for_everyone)("1/d")
    assert policies(await caller.get("/drf")) == ["api"]
    answers = [await caller.get("/drf") for _ in range(20)]
    assert {answer.status_code for answer in answers} == {503}
    waits = [int(answer.headers["Retry-After"]) for answer in answers]
    assert min(waits) >= 86400 - 5
    assert max(waits) <= 2 * 86400
    assert len(set(waits)) > 10
    body = problem(answers[0])
    assert body["type"].endswith("#temporary-reduced-capacity")
    assert body["retry_after"] == waits[0]
    assert "limit" not in body
    # Nothing was taken from the caller's own.
    assert left(answers[-1]) == {"api": 999}


@SERVERS
@pytest.mark.parametrize("mode", ["off", "shadow"])
async def test_modes(caller: AnyClient, settings: Any, mode: str) -> None:
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"MODE": mode, "PROTECT": ["/"]}
    await plan("api 0/d")
    await address_limit("0/d")
    for url in ("/drf", "/open", "/nowhere"):
        response = await caller.get(url)
        assert response.status_code == (404 if url == "/nowhere" else 200)
        assert is_silent(response)


@SERVERS
async def test_a_limit_in_shadow(caller: AnyClient, caplog: pytest.LogCaptureFixture) -> None:
    """Counted and reported, neither refusing nor published."""
    caller = AnyClient(caller.is_async)
    caplog.set_level("INFO", "ratelimits")
    await plan("api 9/d")
    await address_limit("1/d", mode="shadow")
    answers = [await caller.get("/drf") for _ in range(2)]
    assert [policies(answer) for answer in answers] == [["api"], ["api"]]
    assert caplog.messages == ["The limit 'address', in shadow, would have refused."]


@SERVERS
async def test_preflights_count_by_address(caller: AnyClient, settings: Any) -> None:
    """Rule 16."""
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"PROTECT": ["/"]}
    await plan("api 0/d")
    await address_limit("2/d")
    fields = {
        "Origin": PREFLIGHT["HTTP_ORIGIN"],
        "Access-Control-Request-Method": "POST",
    }
    answers = [await caller.request("options", "/open", headers=fields) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert policies(answers[0]) == ["address"]


def is_staff(request: HttpRequest) -> bool:
    return bool(request.user.is_staff)


@SERVERS
async def test_exempt_asks_for_a_user_who_is_not_there_yet(
    caller: AnyClient, settings: Any
) -> None:
    """The door stands before authentication: nobody is staff there, and nothing fails."""
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"EXEMPT": is_staff}
    await address_limit("1/d")
    assert await caller.statuses(2, url="/open") == [200, 429]


def test_a_page_for_a_browser() -> None:
    per_address("0/d")
    response = AnyClient(False).client.get("/open", HTTP_ACCEPT="text/html")
    assert response.status_code == 429
    assert b"<h1>Quota Exceeded</h1>" in response.content


def handler403(request: HttpRequest, exception: Exception) -> HttpResponse:
    return HttpResponse("handler403", status=403)


@pytest.mark.parametrize("debug", [True, False])
def test_handler403_is_for_403_only(settings: Any, debug: bool) -> None:
    """Case 54."""
    settings.DEBUG = debug
    make_plan("deep 0/d deep")
    client = AnyClient(False).client
    assert client.get("/deep").status_code == 429
    assert client.get("/failing/403").content == b"handler403"


async def own_response(request: HttpRequest, decision: Any) -> HttpResponse:
    return HttpResponse("slow down", status=decision.status)


@SERVERS
@pytest.mark.parametrize("url", ["/open", "/deep", "/protected"])
async def test_own_response(caller: AnyClient, settings: Any, url: str) -> None:
    """Cases 51 and 65: of the door, of an exception and of a protected path."""
    settings.RATELIMITS = {"RESPONSE": own_response, "PROTECT": ["/protected"]}
    caller = AnyClient(caller.is_async)
    await plan("api 9/d" if url != "/protected" else "api 0/d", "deep 0/d deep")
    if url == "/open":
        await address_limit("0/d")
    response = await caller.get(url)
    assert (response.status_code, response.content) == (429, b"slow down")
    assert not is_silent(response)
