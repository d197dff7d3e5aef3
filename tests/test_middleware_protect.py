"""Paths on which the middleware enforces the plan, for views without a door of their own."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views import View
from rest_framework import viewsets
from rest_framework.authentication import BaseAuthentication
from rest_framework.decorators import action, api_view
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView

from ratelimits.decorators import exempt, ratelimit, throttle_cost
from ratelimits.limiter import take
from ratelimits.throttling import PlanRateThrottle
from tests.doors import (
    is_silent,
    left,
    make_plan,
    per_address,
    policies,
    problem,
)
from tests.views import CHAINS, FORMS, SERVERS, AnyClient, hello, limited_view

pytestmark = [
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


def taking(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(take(request, cost=3).allowed))


class Page(View):
    @ratelimit()
    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    def post(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()


@api_view(["GET"])
@ratelimit(cost=2)
def below_drf(request: Request) -> Response:
    return Response({})


in_code = ratelimit("9/d", by="ip", name="code")


class KnownToDrf(BaseAuthentication):
    """Somebody whom Django's request does not know yet."""

    def authenticate(self, request: Request) -> Any:
        return User(pk=7), None


class Known(Limited):
    authentication_classes = [KnownToDrf]


class Things(viewsets.ViewSet):
    throttle_classes: Any = []

    @action(detail=False, throttle_classes=[PlanRateThrottle], authentication_classes=[KnownToDrf])
    def known(self, request: Request) -> Response:
        return Response({})

    @in_code
    def in_code(self, request: Request) -> Response:
        return Response({})

    def list(self, request: Request) -> Response:
        return Response([])

    @exempt
    @action(detail=False)
    def health(self, request: Request) -> Response:
        return Response({})

    @action(detail=False, throttle_classes=[PlanRateThrottle])
    @throttle_cost(3)
    def limited(self, request: Request) -> Response:
        return Response({})

    @action(detail=False)
    @ratelimit(cost=4)
    def decorated(self, request: Request) -> Response:
        return Response({})


router = SimpleRouter()
router.register("things", Things, basename="things")
urlpatterns = [
    path("open", hello),
    path("api/open", hello),
    path("api/aopen", ahello),
    path("api/exempt", exempt(hello)),
    path("api/drf", Limited.as_view()),
    path("api/costly", Costly.as_view()),
    path("api/decorated", ratelimit(cost=2)(hello)),
    path("api/code", ratelimit("9/d", by="ip", name="code")(hello)),
    path("api/page", Page.as_view()),
    path("api/taking", taking),
    path("api/below", below_drf),
    path("api/known", Known.as_view()),
    path("api/forms/api_view", api_view(["GET", "HEAD"])(in_code(hello))),
    path("api/forms/action", Things.as_view({"get": "in_code"})),
    path("api/", include(router.urls)),
    *[
        path(f"{prefix}{form.replace(' ', '-')}", limited_view(form, decorator))
        for prefix, decorator in (("api/forms/", in_code), ("exempt/", exempt))
        for form in FORMS
    ],
]


def plan(*limits: str) -> Any:
    return sync_to_async(make_plan)(*limits)


def address_limit(rate: str, **options: Any) -> Any:
    return sync_to_async(per_address)(rate, **options)


@SERVERS
@pytest.mark.parametrize(
    ("url", "cost"),
    [
        ("/api/open", 1),
        ("/api/aopen", 1),
        ("/api/drf", 1),
        ("/api/costly", 5),
        ("/api/decorated", 2),
        ("/api/page", 1),
        ("/api/taking", 3),
        ("/api/below", 2),
        ("/api/things/", 1),
        ("/api/things/limited/", 3),
        ("/api/things/decorated/", 4),
        ("/open", 0),
    ],
)
async def test_protected_paths(caller: AnyClient, settings: Any, url: str, cost: int) -> None:
    """A view with a door of its own is counted once, at its own cost."""
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"PROTECT": ["/api/"]}
    await plan("api 100/d")
    response = await caller.get(url)
    assert response.status_code == 200
    assert is_silent(response) is (cost == 0)
    if cost:
        assert left(response) == {"api": 100 - cost}


@SERVERS
@pytest.mark.parametrize("prefix", [["/api/"], "/api/", ("/other", "/api")])
async def test_protected_views_are_refused(caller: AnyClient, settings: Any, prefix: Any) -> None:
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"PROTECT": prefix}
    await plan("api 1/d")
    answers = [await caller.get("/api/open") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert problem(answers[1])["violated-policies"] == ["api"]
    assert (await caller.get("/open")).status_code == 200


@SERVERS
@pytest.mark.parametrize("url", ["/api/known", "/api/things/known/"])
async def test_a_throttle_is_the_only_door(caller: AnyClient, settings: Any, url: str) -> None:
    """The middleware, who does not know the caller yet, leaves it alone."""
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"PROTECT": ["/api/"]}
    await plan("api 9/d")
    assert left(await caller.get(url)) == {"api": 8}


@SERVERS
@pytest.mark.parametrize("method", ["get", "head"])
@pytest.mark.parametrize("form", [*FORMS, "api_view", "action"])
async def test_a_decorator_is_the_only_door(
    caller: AnyClient, settings: Any, form: str, method: str
) -> None:
    """Wherever it stands at the view."""
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"PROTECT": ["/api/"]}
    await plan("api 9/d")
    response = await caller.request(method, f"/api/forms/{form.replace(' ', '-')}")
    assert response.status_code == 200
    assert left(response) == {"code": 8}


@SERVERS
@pytest.mark.parametrize("method", ["get", "head"])
@pytest.mark.parametrize("form", FORMS)
async def test_exempt_views_of_every_form(
    caller: AnyClient, settings: Any, form: str, method: str
) -> None:
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"PROTECT": ["/exempt/"]}
    await plan("api 0/d")
    await address_limit("0/d")
    response = await caller.request(method, f"/exempt/{form.replace(' ', '-')}")
    assert response.status_code == 200
    assert is_silent(response)


@SERVERS
async def test_another_limit_is_a_door_too(caller: AnyClient, settings: Any) -> None:
    """Who limits a view in code has decided; a method without a limit is protected."""
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"PROTECT": ["/api/"]}
    await plan("api 1/d")
    assert policies(await caller.get("/api/code")) == ["code"]
    assert policies(await caller.post("/api/page")) == ["api"]
    assert (await caller.post("/api/page")).status_code == 429


def test_protected_paths_are_those_of_the_urls(settings: Any) -> None:
    """Wherever the server mounts the project."""
    settings.RATELIMITS = {"PROTECT": ["/api/"]}
    make_plan("api 1/d")
    caller = AnyClient(False).client
    answers = [caller.get("/api/open", SCRIPT_NAME="/mounted") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]


@SERVERS
@pytest.mark.parametrize("url", ["/api/exempt", "/api/things/health/"])
async def test_exempt_views_on_protected_paths(caller: AnyClient, settings: Any, url: str) -> None:
    """Case 68: whatever is limited, and whatever is down."""
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"PROTECT": ["/"], "STORE_FAILURE": "deny"}
    await plan("api 0/d")
    await address_limit("0/d")
    assert (await caller.get("/api/open")).status_code == 429
    broken = {"BACKEND": "django.core.cache.backends.redis.RedisCache"}
    settings.CACHES = {"default": {**broken, "LOCATION": "redis://127.0.0.1:1/0"}}
    assert (await caller.get("/api/open")).status_code == 503
    for _ in range(20):
        response = await caller.get(url)
        assert response.status_code == 200
        assert is_silent(response)
