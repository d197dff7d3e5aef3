"""What went wrong in projects of Django and DRF, as it went wrong there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from django.utils.decorators import method_decorator, sync_and_async_middleware
from django.views import View
from rest_framework.authentication import BasicAuthentication
from rest_framework.decorators import api_view
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.decorators import exempt, ratelimit
from ratelimits.limiter import take
from ratelimits.throttling import PlanRateThrottle
from tests.doors import is_silent, left, make_plan, per_address, statuses
from tests.processes import ROOT
from tests.servers import RedisServer
from tests.settings import MIDDLEWARE
from tests.views import CHAINS, OURS, SERVERS, AnyClient, hello

pytestmark = [
    pytest.mark.urls(__name__),
    pytest.mark.usefixtures("still"),
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("error"),
]
WRONG = {"Authorization": "Basic d3Jvbmc6d3Jvbmc="}


class Closed(APIView):
    authentication_classes = [BasicAuthentication]
    permission_classes = [IsAuthenticated]
    throttle_classes = [PlanRateThrottle]

    def get(self, request: Any) -> Response:
        return Response({})


class Plain(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        return hello(request)

    def page(self, request: HttpRequest, word: str = "") -> HttpResponse:
        return hello(request)


class ReadsData(APIView):
    def post(self, request: Any) -> Response:
        return Response({"name": request.data["name"]})


def reads_body(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.body)


once_a_minute = ratelimit("1/m", by="ip", name="code")
urlpatterns = [
    path("closed", Closed.as_view()),
    path("public", hello),
    path("healthz", exempt(hello)),
    path("health/path", hello),
    path("data", ReadsData.as_view()),
    path("body", reads_body),
]


@pytest.fixture
def serve() -> Iterator[Callable[[Any], None]]:
    before = list(urlpatterns)

    def put(view: Any) -> None:
        urlpatterns.append(path("view", view))

    yield put
    urlpatterns[:] = before


# Case 59: guesses with bad credentials.


def test_guesses_before_a_throttle(client: Client, settings: Any) -> None:
    """DRF authenticates first; a limit per address in the middleware comes before that."""
    make_plan("api 5/m")
    assert statuses(lambda: client.get("/closed", headers=WRONG), 10) == [401] * 10
    told = " ".join((ROOT / "README.md").read_text().split())
    assert "Throttles of DRF run after authentication: guesses at credentials" in told
    settings.MIDDLEWARE = [OURS, *MIDDLEWARE]
    per_address("5/m")
    behind = Client()
    answers = statuses(lambda: behind.get("/closed", headers=WRONG), 10)
    assert answers == [401] * 5 + [429] * 5


# Case 62: HEAD.


def test_head_is_get(client: Client, serve: Any, settings: Any) -> None:
    """Below a decorator for GET alone, and where all methods count."""
    serve(ratelimit("1/m", by="ip", methods=["GET"], name="get")(hello))
    assert [client.get("/view").status_code, client.head("/view").status_code] == [200, 429]
    settings.MIDDLEWARE = [OURS]
    per_address("10/m")
    behind = Client()
    assert left(behind.get("/public")) == {"address": 9}
    assert left(behind.head("/public")) == {"address": 8}


# Case 64: where a decorator may stand.


def forms() -> dict[str, Callable[[], Any]]:
    """Each is made anew, so that nothing of it is shared."""

    def function(request: Any) -> Response:
        return Response({})

    def kind() -> Any:
        return type("Page", (Plain,), {})

    class OnGet(Plain):
        @method_decorator(once_a_minute)
        def get(self, request: HttpRequest) -> HttpResponse:
            return hello(request)

    return {
        "above api_view": lambda: once_a_minute(api_view(["GET"])(function)),
        "below api_view": lambda: api_view(["GET"])(once_a_minute(function)),
        "dispatch": lambda: method_decorator(once_a_minute, name="dispatch")(kind()).as_view(),
        "name of get": lambda: method_decorator(once_a_minute, name="get")(kind()).as_view(),
        "get": OnGet.as_view,
        "partial": lambda: once_a_minute(partial(Plain().page, word="x")),
        "bound method": lambda: once_a_minute(Plain().page),
    }


@pytest.mark.parametrize("form", forms())
def test_a_decorator_may_stand_everywhere(client: Client, serve: Any, form: str) -> None:
    serve(forms()[form]())
    assert statuses(lambda: client.get("/view"), 2) == [200, 429]


# Case 65: async views, in chains of any kind, with a refusal of the project's own.


def refused(request: HttpRequest, decision: Any) -> HttpResponse:
    return HttpResponse(f"slow down, {User.objects.count()}", status=429)


async def arefused(request: HttpRequest, decision: Any) -> HttpResponse:
    return HttpResponse(f"slow down, {await User.objects.acount()}", status=429)


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("own", [refused, arefused])
@SERVERS
async def test_async_views(
    caller: AnyClient, serve: Any, settings: Any, chain: str, own: Any
) -> None:
    @once_a_minute
    async def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(str(await User.objects.acount()))

    settings.MIDDLEWARE = CHAINS[chain]
    settings.RATELIMITS = {"RESPONSE": own}
    serve(view)
    caller = AnyClient(caller.is_async)
    first, second = await caller.get(), await caller.get()
    assert (first.status_code, first.content) == (200, b"0")
    assert (second.status_code, second.content) == (429, b"slow down, 0")


# Case 67: pages that are the same for everybody.


@pytest.mark.parametrize("place", ["outermost", "innermost"])
def test_a_public_page_stays_public(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Whose visitor is logged in, and counted by address: no session, no `Vary: Cookie`."""
    settings.MIDDLEWARE = [OURS, *MIDDLEWARE] if place == "outermost" else [*MIDDLEWARE, OURS]
    per_address("5/m")
    client.force_login(User.objects.create(username="ann"))
    client.get("/public")
    monkeypatch.setattr(
        "django.contrib.sessions.backends.db.SessionStore.load",
        lambda self: pytest.fail("the session was read"),
    )
    response = client.get("/public")
    assert left(response) == {"address": 3}
    assert "Vary" not in response.headers


# Case 68: health checks of a load balancer.


def is_health(request: HttpRequest) -> bool:
    return request.path.startswith("/health/")


@pytest.mark.parametrize("url", ["/healthz", "/health/path"])
def test_health_checks(client: Client, settings: Any, on_redis: RedisServer, url: str) -> None:
    """By a view or by its path: with an empty bucket, and while Redis is down."""
    settings.MIDDLEWARE = [OURS]
    settings.RATELIMITS = {
        "PROTECT": ["/"],
        "EXEMPT": is_health,
        "STORE_TIMEOUT": 20,
        "STORE_FAILURE": "deny",
        "LOCAL_REFUSALS": 0,
    }
    make_plan("api 5/m")
    per_address("5/m")
    assert statuses(lambda: client.get("/public"), 6) == [200] * 5 + [429]
    stored = set(on_redis.client().keys())

    def is_fine() -> bool:
        response = client.get(url)
        return response.status_code == 200 and is_silent(response)

    assert all(is_fine() for _ in range(10))
    assert set(on_redis.client().keys()) == stored
    on_redis.kill()
    assert client.get("/public").status_code == 503
    assert all(is_fine() for _ in range(1000))


# Case 69: keys that are in the body.


@sync_and_async_middleware
def by_name(get_response: Any) -> Any:
    """A middleware that a project makes of the decorator."""
    return ratelimit("1/m", by="field:name", name="name")(get_response)


def in_body(request: HttpRequest) -> str | None:
    """What a project that looks into bodies makes of them, though a view is to read them too."""
    if request.content_type == "application/json":
        return str(json.loads(request.body)["name"])
    return request.POST.get("name")


async def later(request: HttpRequest) -> str | None:
    return in_body(request)


@sync_and_async_middleware
def by_callable(get_response: Any) -> Any:
    return ratelimit("1/m", by=in_body, name="name")(get_response)


@sync_and_async_middleware
def by_rate(get_response: Any) -> Any:
    def rate(request: HttpRequest) -> str:
        return "1/m" if in_body(request) else "9/m"

    return ratelimit(rate, by=lambda request: "x", name="name")(get_response)


def never_exempt(request: HttpRequest) -> bool:
    return in_body(request) == "nobody"


# What a middleware is made of, and the settings that look into the body.
KEYS: dict[str, tuple[str, dict[str, Any]]] = {
    "field": (f"{__name__}.by_name", {}),
    "callable": (f"{__name__}.by_callable", {}),
    "rate": (f"{__name__}.by_rate", {}),
    "tenant": (OURS, {"TENANT": in_body, "PROTECT": ["/"]}),
    "async tenant": (OURS, {"TENANT": later, "PROTECT": ["/"]}),
    "exempt": (OURS, {"TENANT": lambda request: "x", "EXEMPT": never_exempt, "PROTECT": ["/"]}),
}
BODIES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "json": lambda: ('{"name": "bob"}', "application/json"),
    "form": lambda: ("name=bob", "application/x-www-form-urlencoded"),
    "multipart": lambda: ({"name": "bob", "file": SimpleUploadedFile("a.txt", b"content")},),
}


@pytest.mark.parametrize("url", ["/data", "/body"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("key", KEYS)
@SERVERS
async def test_bodies_that_a_middleware_reads(
    caller: AnyClient, settings: Any, key: str, body: str, url: str
) -> None:
    """The view reads all of it, whatever was looked at before."""
    caller = AnyClient(caller.is_async)
    middleware, settings.RATELIMITS = KEYS[key]
    settings.MIDDLEWARE = [middleware]
    await sync_to_async(make_plan)("api 1/m")
    first = await caller.post(url, *BODIES[body]())
    assert first.status_code == 200
    assert b"bob" in first.content
    if url == "/body" and body == "multipart":
        assert b"content" in first.content
    again = await caller.post(url, *BODIES[body](), REMOTE_ADDR="192.0.2.9")
    assert again.status_code == 429


def test_an_upload_is_streamed_whatever_looks_at_it(client: Client, settings: Any) -> None:
    """What is too large for the memory is not read into it, as Django's settings have it."""
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 1000
    settings.MIDDLEWARE = [f"{__name__}.by_callable"]
    upload = {"name": "bob", "file": SimpleUploadedFile("a.txt", b"x" * 5000)}
    assert client.post("/data", upload).status_code == 200
    assert client.post("/data", {"name": "bob"}).status_code == 429


def test_callables_that_take_themselves(client: Client, serve: Any) -> None:
    make_plan("api 1/m")

    def by(request: HttpRequest) -> str | None:
        take(request)
        return in_body(request)

    serve(ratelimit("9/m", by=by, name="name")(reads_body))
    response = client.post("/view", *BODIES["multipart"]())
    assert b"content" in response.content
    assert "_load_post_and_files" not in vars(response.wsgi_request)


# Case 70 is in testing/: test_counts.py and test_plugin.py.
