"""Caches, LoginRequiredMiddleware and policies of content, as docs/neighbours.md says."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_page
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.decorators import ratelimit
from ratelimits.throttling import PlanRateThrottle
from ratelimits.views import rate_limit
from tests.checking import ids
from tests.doors import BROWSER, is_silent, left, make_plan, per_address
from tests.neighbours.page import sample
from tests.views import hello

OURS = "ratelimits.middleware.RateLimitMiddleware"
LOGIN_REQUIRED = "django.contrib.auth.middleware.LoginRequiredMiddleware"
POLICY = "django.middleware.csp.ContentSecurityPolicyMiddleware"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls(__name__),
    pytest.mark.usefixtures("still"),
]


@method_decorator(cache_page(300), name="dispatch")
class Cached(APIView):
    throttle_classes = [PlanRateThrottle]

    def get(self, request: Any) -> Response:
        return Response({})


def body(request: HttpRequest) -> HttpResponse:
    """The views of the page do nothing by themselves."""
    return HttpResponse("cached")


PAGES = sample("def prices", dots="return body(request)", body=body)

urlpatterns = [
    path("prices", PAGES["prices"]),
    path("rates", PAGES["rates"]),
    path("drf", Cached.as_view()),
    path("decorated", ratelimit("1/d", by="ip", name="decorated")(hello)),
    path("plain", hello),
    path("rate_limit", rate_limit),
]


@pytest.fixture(autouse=True)
def empty(settings: Any) -> None:
    cache.clear()
    settings.RATELIMITS = {"PROTECT": []}


def from_address(number: int, url: str) -> Any:
    return Client().get(url, REMOTE_ADDR=f"192.0.2.{number}")


def test_the_order_that_is_shown() -> None:
    shown = sample("FetchFromCacheMiddleware")["MIDDLEWARE"]
    assert ids(MIDDLEWARE=shown) == []
    assert ids(MIDDLEWARE=[*reversed(shown)]) == ["W021"]


def test_above_the_cache_all_are_counted(settings: Any) -> None:
    settings.MIDDLEWARE = [OURS]
    assert left(from_address(1, "/prices")) == {"prices": 59}
    assert left(from_address(1, "/prices")) == {"prices": 58}
    assert left(from_address(2, "/prices")) == {"prices": 59}


@pytest.mark.parametrize("url", ["/rates", "/drf"])
def test_below_the_cache_only_those_that_reach_it(settings: Any, url: str) -> None:
    make_plan()
    settings.MIDDLEWARE = [OURS]
    assert not is_silent(from_address(1, url))
    assert is_silent(from_address(1, url)) and is_silent(from_address(2, url))


@pytest.mark.parametrize("url", ["/rates", "/drf"])
def test_below_the_cache_numbers_are_stored_without_the_middleware(settings: Any, url: str) -> None:
    """Which is why the page says that it is needed."""
    make_plan()
    settings.MIDDLEWARE = []
    first = from_address(1, url)
    assert left(from_address(2, url)) == left(first)


@pytest.fixture
def login_required(settings: Any) -> None:
    settings.MIDDLEWARE = [OURS, *settings.MIDDLEWARE, LOGIN_REQUIRED]


def test_strangers_do_not_reach_decorators(login_required: None) -> None:
    answers = [Client().get("/decorated") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [302] * 3
    assert all(map(is_silent, answers))
    ada = Client()
    ada.force_login(User.objects.create(username="ada"))
    assert [ada.get("/decorated").status_code for _ in range(2)] == [200, 429]


def test_strangers_pass_the_middleware(login_required: None, settings: Any) -> None:
    make_plan("api 2/d")
    settings.RATELIMITS = {"PROTECT": ["/plain"]}
    assert [Client().get("/plain").status_code for _ in range(3)] == [302, 302, 429]
    per_address("1/d")
    other = [from_address(9, "/decorated").status_code for _ in range(2)]
    assert other == [302, 429]


def test_strangers_may_ask_what_is_left(login_required: None) -> None:
    assert Client().get("/rate_limit").status_code == 200


@pytest.mark.min_django(6, 0)
def test_answers_of_the_middleware_have_the_policy(settings: Any) -> None:
    """That pages work under a strict one is tried with a browser."""
    settings.MIDDLEWARE = sample("ContentSecurityPolicyMiddleware")["MIDDLEWARE"]
    settings.SECURE_CSP = {"default-src": ["'self'"]}
    per_address("1/d")
    for status in (200, 429):
        answer = Client().get("/plain", headers={"Accept": BROWSER})
        assert answer.status_code == status
        assert answer.headers["Content-Security-Policy"] == "default-src 'self'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
