from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
import requests
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.test import AsyncClient, Client, RequestFactory, override_settings
from django.urls import path
from rest_framework.test import APIClient, APIRequestFactory
from rest_framework.throttling import SimpleRateThrottle

from ratelimits.decorators import ratelimit
from ratelimits.testing import assert_limited, assert_not_limited, off, override
from ratelimits.throttling import PlanRateThrottle
from tests.doors import BROWSER, for_everyone, make_plan
from tests.testing.limited import DropIn, View
from tests.views import function, hello

pytestmark = [pytest.mark.urls(__name__), pytest.mark.usefixtures("still")]


class Theirs(View):
    class Never(SimpleRateThrottle):
        rate = "0/hour"

        def get_cache_key(self, request: Any, view: Any) -> str:
            return "x"

    throttle_classes = [PlanRateThrottle, Never]


def too_many(request: HttpRequest) -> HttpResponse:
    return HttpResponse("enough for today", status=429)


def maintenance(request: HttpRequest) -> HttpResponse:
    return HttpResponse("back soon", status=503)


def streaming(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(iter([b"x"]), status=429)


def passed_on(request: HttpRequest) -> HttpResponse:
    """What somebody else has said."""
    told = {"violated-policies": ["theirs"], "instance": "/orders/7"}
    return JsonResponse(told, status=429, headers={"RateLimit": '"theirs";r=0;t=5'})


def lines(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(iter([b"{}"]), content_type="application/x-ndjson")


urlpatterns = [
    path("passed-on", passed_on),
    path("counted-passed-on", ratelimit()(passed_on)),
    path("lines", ratelimit()(lines)),
    path("plan", View.as_view()),
    path("drop-in", DropIn.as_view()),
    path("theirs", Theirs.as_view()),
    path("code", ratelimit()(hello)),
    path("async", ratelimit()(function(hello, True))),
    path("open", hello),
    path("too-many", too_many),
    path("counted-too-many", ratelimit()(too_many)),
    path("maintenance", ratelimit()(maintenance)),
    path("streaming", streaming),
]


def own_response(request: HttpRequest, decision: Any) -> HttpResponse:
    return HttpResponse("slow down", status=429)


def fails(check: Any, response: Any, *args: Any) -> str:
    """What it says."""
    with pytest.raises(AssertionError) as raised:
        check(response, *args)
    return str(raised.value)


def are_told(limited: Any, not_limited: Any) -> None:
    """Both kinds of responses are told from each other, and the limit is known."""
    assert_limited(limited)
    assert_limited(limited, "api")
    assert_not_limited(not_limited)
    assert fails(assert_limited, limited, "search") == 'Limited by "api", not by "search".'
    assert fails(assert_not_limited, limited).startswith('Limited by "api".')
    assert fails(assert_limited, not_limited).startswith("Not limited: the answer is 200.")


@pytest.mark.parametrize("url", ["/plan", "/code", "/async"])
@pytest.mark.parametrize("accept", ["*/*", BROWSER])
@pytest.mark.parametrize("own", [None, own_response])
@pytest.mark.parametrize("kind", [Client, APIClient])
def test_every_form_of_refusal(kind: Any, url: str, accept: str, own: Any) -> None:
    """Problems, pages, the browsable API, and what projects answer themselves."""
    client = kind(headers={"Accept": accept})
    with override_settings(RATELIMITS={"RESPONSE": own}), override("1/d"):
        first, second = client.get(url), client.get(url)
    are_told(second, first)


async def test_async_clients() -> None:
    with override("1/d"):
        first, second = [await AsyncClient().get("/async") for _ in range(2)]
    are_told(second, first)


@pytest.mark.parametrize("accept", ["application/json", BROWSER])
def test_views_that_are_called_without_a_client(accept: str) -> None:
    """Of DRF not rendered yet; of others with nothing but the fields."""
    makes: Any = {"headers": {"Accept": accept}}
    with override("1/d"):
        drf = [View.as_view()(APIRequestFactory(**makes).get("/")) for _ in range(2)]
        view = ratelimit()(hello)
    are_told(drf[1], drf[0])
    with override("1/d"):
        plain = [view(RequestFactory(**makes).get("/")) for _ in range(2)]
    are_told(plain[1], plain[0])


def over_http(kind: str, response: Any) -> Any:
    """As others receive it."""
    if kind == "httpx":
        return httpx.Response(
            response.status_code, headers=response.headers, content=response.content
        )
    received = requests.Response()
    received.status_code, received._content = response.status_code, response.content
    received.headers.update(response.headers)
    return received


@pytest.mark.parametrize("kind", ["httpx", "requests"])
@pytest.mark.parametrize("accept", ["*/*", BROWSER])
def test_responses_of_a_live_server(client: Client, kind: str, accept: str) -> None:
    with override("1/d"):
        answers = [client.get("/plan", headers={"Accept": accept}) for _ in range(2)]
    first, second = (over_http(kind, answer) for answer in answers)
    are_told(second, first)


def test_several_limits(client: Client) -> None:
    with override("5/d"), override("1/d", name="more"), override("1/d", name="even more"):
        client.get("/plan")
        response = client.get("/plan")
    assert_limited(response, "more")
    assert_limited(response, "even more")
    told = fails(assert_limited, response, "api")
    assert told == 'Limited by "more", "even more", not by "api".'


def test_limits_in_code(client: Client) -> None:
    with override("1/d", name="user", in_code=True):
        first, second = client.get("/drop-in"), client.get("/drop-in")
    assert_limited(second, "user")
    assert_not_limited(first)


def test_what_was_left_is_told(client: Client) -> None:
    with override("5/d"), override("3/d", name="more"):
        told = fails(assert_limited, client.get("/plan"))
    assert told == 'Not limited: the answer is 200. "api" has 4 of 5 left, "more" has 2 of 3 left.'


@pytest.mark.parametrize("url", ["/open", "/elsewhere"])
def test_who_was_not_counted_is_told_why(client: Client, url: str) -> None:
    with override("0/d"):
        told = fails(assert_limited, client.get(url))
        assert "has its view a door, and its caller a plan?" in told
        with off():
            told = fails(assert_limited, client.get("/plan"))
    assert told == 'Not limited: the answer is 200. The mode of all limits is "off".'


def test_how_long_a_refusal_holds_is_told(client: Client) -> None:
    with override("1/m"):
        client.get("/plan")
        told = fails(assert_not_limited, client.get("/plan"))
        assert told == (
            'Limited by "api". Limit is 1 request per minute for this address. Retry-After is 60.'
        )
    with override("0/m"):
        told = fails(assert_not_limited, client.get("/plan"))
    assert told.endswith("It would never pass.")


@pytest.mark.parametrize("headers", [[], ["x-ratelimit"]])
def test_fields_that_say_less(client: Client, headers: list[str]) -> None:
    with override_settings(RATELIMITS={"HEADERS": headers}), override("1/d"):
        first = client.get("/plan")
        page = client.get("/plan", headers={"Accept": BROWSER})
    assert_limited(page, "api")
    told = fails(assert_limited, first)
    assert told == 'Not limited: the answer is 200. "api" has 0 of 1 left.'
    if headers:
        received = over_http("requests", page)
        assert_limited(received)
        told = fails(assert_limited, received, "api")
        assert told == 'Limited by one that is not named, not by "api".'


def test_a_limit_in_shadow(client: Client) -> None:
    with override("1/d", mode="shadow"):
        told = fails(assert_limited, [client.get("/plan") for _ in range(2)][-1])
    assert told == 'Not limited: the answer is 200. "api" has 0 of 1 left, and is in shadow.'


def test_streams_whatever_is_in_them(client: Client) -> None:
    with override("1/d"):
        first, second = client.get("/lines"), client.get("/lines")
    are_told(second, first)


@pytest.mark.parametrize("accept", ["*/*", BROWSER])
def test_answers_that_have_not_been_read(client: Client, accept: str) -> None:
    with override("1/d"):
        answers = [client.get("/plan", headers={"Accept": accept}) for _ in range(2)]
    first, second = (
        httpx.Response(each.status_code, headers=each.headers, stream=httpx.ByteStream(b"{}"))
        for each in answers
    )
    are_told(second, first)


@pytest.mark.parametrize(
    "url",
    [
        "/too-many",
        "/counted-too-many",
        "/theirs",
        "/streaming",
        "/passed-on",
        "/counted-passed-on",
    ],
)
def test_refusals_of_others_are_none_of_ours(client: Client, url: str) -> None:
    with override("9/d"):
        response = client.get(url)
        unrendered = Theirs.as_view()(APIRequestFactory().get("/"))
    assert "Request was throttled" in fails(assert_limited, unrendered)
    for check in (assert_limited, assert_not_limited):
        assert re.match("Nothing of ratelimits answered 429: '", fails(check, response))
    if "too-many" in url:
        assert fails(assert_limited, response).endswith("'enough for today'")


def test_a_service_that_has_nothing_to_give(client: Client) -> None:
    """What is a 503 of a limit, of the store, and of somebody else."""
    with override("9/d"):
        theirs = client.get("/maintenance")
    assert_not_limited(theirs)
    assert fails(assert_limited, theirs).startswith("Nothing of ratelimits answered 503")


@pytest.mark.django_db
def test_the_limit_for_everyone(client: Client) -> None:
    make_plan()
    for_everyone("0/d")
    response = client.get("/plan")
    assert response.status_code == 503
    assert_limited(response, "everyone")
    assert fails(assert_not_limited, response).startswith('Limited by "everyone". The service')


@pytest.mark.parametrize("url", ["/plan", "/code"])
def test_a_store_that_is_away(client: Client, settings: Any, url: str) -> None:
    broken = {"BACKEND": "django.core.cache.backends.redis.RedisCache"}
    settings.CACHES = {"default": {**broken, "LOCATION": "redis://127.0.0.1:1/0"}}
    settings.RATELIMITS = {"STORE_FAILURE": "deny"}
    with override("9/d"):
        response = client.get(url)
    assert fails(assert_limited, response) == (
        "Not limited: the store was away, for which the answer is 503."
    )
    assert fails(assert_not_limited, response).startswith("Limited since the store was away.")
