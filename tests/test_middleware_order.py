"""The middleware among others: caches, conditional requests, CORS."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from corsheaders.defaults import default_headers
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_page
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.decorators import ratelimit
from ratelimits.throttling import PlanRateThrottle
from tests.doors import PREFLIGHT, is_silent, left, make_plan, per_address
from tests.views import SERVERS, AnyClient, hello

OURS = "ratelimits.middleware.RateLimitMiddleware"
CACHING = [
    "django.middleware.cache.UpdateCacheMiddleware",
    "django.middleware.cache.FetchFromCacheMiddleware",
]
ORIGIN = {"HTTP_ORIGIN": "https://shop.example"}
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

made: list[str] = []
by_key = ratelimit("10/d", by="header:X-Key", name="key")


def page(request: HttpRequest) -> HttpResponse:
    made.append(request.headers.get("X-Key", ""))
    return HttpResponse(f"made for {made[-1]}")


@method_decorator(cache_page(60), name="dispatch")
class CachedAround(APIView):
    throttle_classes = [PlanRateThrottle]
    renderer_classes = [JSONRenderer]
    authentication_classes: Any = []

    def get(self, request: Request) -> Response:
        made.append("drf")
        return Response({"made": len(made)})


def etagged(request: HttpRequest) -> HttpResponse:
    return HttpResponse("same", headers={"ETag": '"1"'})


urlpatterns = [
    path("page", by_key(page)),
    path("cached", by_key(cache_page(60)(page))),
    path("drf", CachedAround.as_view()),
    path("etagged", by_key(etagged)),
    path("small", ratelimit("0/d", by="ip")(hello)),
    path("open", hello),
]


@pytest.fixture(autouse=True)
def empty() -> None:
    made.clear()
    cache.clear()


@SERVERS
async def test_a_cached_page_has_its_readers_own_numbers(caller: AnyClient, settings: Any) -> None:
    """Case 56: the limit is around the cache, and the fields are put on outside of both."""
    settings.MIDDLEWARE = [OURS]
    caller = AnyClient(caller.is_async)
    a, b = {"X-Key": "a"}, {"X-Key": "b"}
    first = await caller.get("/cached", headers=a)
    second = await caller.get("/cached", headers=b)
    assert first.content == second.content == b"made for a"
    assert left(first) == left(second) == {"key": 9}
    for _ in range(9):
        await caller.get("/cached", headers=a)
    refused = await caller.get("/cached", headers=a)
    assert refused.status_code == 429
    assert refused.headers["Cache-Control"] == "no-store"
    third = await caller.get("/cached", headers=b)
    assert (third.content, left(third)) == (b"made for a", {"key": 8})
    assert "Retry-After" not in third.headers
    assert made == ["a"]


@SERVERS
@pytest.mark.parametrize("url", ["/page", "/drf"])
async def test_a_page_from_the_sites_cache_tells_nobodys_numbers(
    caller: AnyClient, settings: Any, url: str
) -> None:
    """Case 56: who was not counted is told nothing, least of all what another has left."""
    await sync_to_async(make_plan)()
    settings.MIDDLEWARE = [OURS, *CACHING]
    caller = AnyClient(caller.is_async)
    first = await caller.get(url, headers={"X-Key": "a"})
    assert list(left(first).values()) == [9]
    second = await caller.get(url, headers={"X-Key": "b"})
    assert second.content == first.content
    assert is_silent(second)
    assert len(made) == 1


@SERVERS
async def test_a_refusal_is_never_stored(caller: AnyClient, settings: Any) -> None:
    """Case 56: nor served from the site's cache."""
    settings.MIDDLEWARE = [OURS, *CACHING]
    caller = AnyClient(caller.is_async)
    assert (await caller.get("/small")).status_code == 429
    urlpatterns[4] = path("small", hello)
    try:
        assert (await caller.get("/small")).status_code == 200
    finally:
        urlpatterns[4] = path("small", ratelimit("0/d", by="ip")(hello))


@SERVERS
async def test_not_modified(caller: AnyClient, settings: Any) -> None:
    """A 304 keeps few fields of the response that it stands for."""
    settings.MIDDLEWARE = [OURS, "django.middleware.http.ConditionalGetMiddleware"]
    caller = AnyClient(caller.is_async)
    response = await caller.get("/etagged", headers={"If-None-Match": '"1"'})
    assert response.status_code == 304
    assert left(response) == {"key": 9}


@pytest.fixture
def cors(settings: Any) -> None:
    settings.MIDDLEWARE = ["corsheaders.middleware.CorsMiddleware", OURS]
    settings.CORS_ALLOW_ALL_ORIGINS = True
    settings.CORS_ALLOW_HEADERS = (*default_headers, "x-key")
    settings.CORS_EXPOSE_HEADERS = ["RateLimit", "RateLimit-Policy", "Retry-After"]


@SERVERS
async def test_cross_origin_callers_may_read_a_refusal(caller: AnyClient, cors: None) -> None:
    """Of a view and of the door."""
    caller = AnyClient(caller.is_async)
    refused = await caller.get("/small", headers={"Origin": "https://shop.example"})
    await sync_to_async(per_address)("0/d")
    turned_away = await caller.get("/open", headers={"Origin": "https://shop.example"})
    for response in (refused, turned_away):
        assert response.status_code == 429
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        exposed = response.headers["Access-Control-Expose-Headers"]
        assert exposed == "RateLimit, RateLimit-Policy, Retry-After"
        assert "RateLimit" in response.headers


def test_preflights_end_at_cors(cors: None) -> None:
    """Nothing is counted for them, not even by address."""
    per_address("1/d")
    client = AnyClient(False).client
    for _ in range(3):
        response = client.options("/open", **PREFLIGHT)
        assert response.status_code == 200
        assert is_silent(response)
    assert client.get("/open", **ORIGIN).status_code == 200
    assert client.get("/open", **ORIGIN).status_code == 429


def test_without_the_middleware_the_doors_publish(settings: Any) -> None:
    settings.MIDDLEWARE = []
    client = AnyClient(False).client
    assert left(client.get("/page")) == {"key": 9}


def test_with_the_middleware_it_alone_publishes(settings: Any, monkeypatch: Any) -> None:
    """Once, outside of all that could store it."""
    published: list[Any] = []
    for module in ("ratelimits.wrapping", "ratelimits.throttling.refusing"):
        monkeypatch.setattr(f"{module}.publish", lambda *args: published.append(args))
    make_plan()
    settings.MIDDLEWARE = [OURS]
    client = AnyClient(False).client
    for url in ("/page", "/drf"):
        assert list(left(client.get(url)).values()) == [9]
    assert published == []
    settings.MIDDLEWARE = []
    cache.clear()
    AnyClient(False).client.get("/page")
    assert len(published) == 1
