"""The drop-in throttles where projects override those of DRF in ways of their own."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, RequestFactory
from django.urls import path
from rest_framework import throttling as theirs
from rest_framework.exceptions import Throttled
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.decorators import exempt
from ratelimits.logs import once
from ratelimits.throttling import (
    BaseThrottle,
    ScopedRateThrottle,
    SimpleRateThrottle,
    UserRateThrottle,
)
from tests.doors import left, statuses

pytestmark = [pytest.mark.urls(__name__), pytest.mark.usefixtures("still")]


class View(APIView):
    throttle_classes: list[Any] = []

    def get(self, request: Any) -> Response:
        return Response({})


def at(*kinds: Any, **said: Any) -> Any:
    made: Any = type("Made", (View,), {"throttle_classes": kinds, **said})
    return made.as_view()


def codes(view: Any, times: int) -> list[int]:
    return statuses(lambda: view(RequestFactory().get("/")), times)


class Copied(SimpleRateThrottle):
    """With the whole of DRF's method copied, for a change in the middle of it."""

    rate = "2/min"
    num_requests: Any
    duration: Any

    def get_cache_key(self, request: Any, view: Any) -> str:
        return "copied"

    def allow_request(self, request: Any, view: Any) -> bool:
        self.key = self.get_cache_key(request, view)
        self.history = self.cache.get(self.key, [])
        self.now = self.timer()
        while self.history and self.history[-1] <= self.now - self.duration:
            self.history.pop()
        if len(self.history) >= self.num_requests:
            return self.throttle_failure()
        return self.throttle_success()


def test_a_copy_of_the_whole_method_counts_as_it_did(caplog: pytest.LogCaptureFixture) -> None:
    once.forget()
    view = at(Copied)
    assert codes(view, 3) == [200, 200, 429]
    assert 50 < int(view(RequestFactory().get("/")).headers["Retry-After"]) <= 60
    cache.clear()
    assert codes(view, 3) == [200, 200, 429]
    (told,) = [each.getMessage() for each in caplog.records if each.name == "ratelimits"]
    assert told.startswith(f"{__name__}.Copied counts in the cache by itself, as Django REST")


class Failures(SimpleRateThrottle):
    """Counts only logins that fail, and forgets them after one that does not."""

    rate = "2/min"
    num_requests: Any
    duration: Any

    def get_cache_key(self, request: Any, view: Any) -> str:
        return "failures"

    def throttle_success(self) -> bool:
        return True

    def failed(self) -> None:
        self.history.insert(0, self.now)
        self.cache.set(self.key, self.history, self.duration)


class Login(View):
    throttle_classes = [Failures]

    def get_throttles(self) -> Any:
        self.kept: Any = super().get_throttles()
        return self.kept

    def get(self, request: Any) -> Response:
        if "wrong" in request.query_params:
            self.kept[0].failed()
            return Response({}, status=400)
        cache.delete("failures")
        return Response({})


class PinnedFailures(Failures, ScopedRateThrottle):
    def allow_request(self, request: Any, view: Any) -> bool:
        self.num_requests, self.duration = self.parse_rate("2/min")
        return super(ScopedRateThrottle, self).allow_request(request, view)


@pytest.mark.parametrize("kind", [Failures, PinnedFailures])
def test_a_throttle_that_counts_some_requests_later(kind: Any) -> None:
    made: Any = type("Made", (Login,), {"throttle_classes": [kind]})
    view = made.as_view()

    def tried(*urls: str) -> list[int]:
        return [view(RequestFactory().get(url)).status_code for url in urls]

    assert tried("/", "/", "/", "/?wrong", "/", "/") == [200, 200, 200, 400, 200, 200]
    assert tried("/?wrong", "/?wrong", "/", "/?wrong") == [400, 400, 429, 429]
    cache.delete("failures")
    assert tried("/") == [200]


class Logging(UserRateThrottle):
    """Does more than DRF's method, in either way that there is."""

    rate = "2/min"
    scope = "logging"
    duration: Any

    def throttle_success(self) -> bool:
        return super().throttle_success() is True


class Copying(Logging):
    scope = "copying"

    def throttle_success(self) -> bool:
        self.history.insert(0, self.now)
        self.cache.set(self.key, self.history, self.duration)
        return True


class Twice(Copying):
    scope = "twice"

    def throttle_success(self) -> bool:
        return super().throttle_success()


@pytest.mark.parametrize("kind", [Logging, Copying, Twice])
def test_who_counts_each_request_is_counted_by_us(kind: Any) -> None:
    view = at(kind)
    assert left(view(RequestFactory().get("/"))) == {kind.scope: 1}
    assert codes(view, 2) == [200, 429]


def test_a_method_that_nobody_can_look_into() -> None:
    class Mocked(Logging):
        scope = "mocked"
        throttle_success = mock.Mock(return_value=True)

    assert left(at(Mocked)(RequestFactory().get("/"))) == {"mocked": 1}


class Pinned(ScopedRateThrottle):
    """With a scope of its own, past the method that asks the view for one."""

    THROTTLE_RATES = {"pinned": "2/min", "view": "1/min"}
    scope = "pinned"

    def allow_request(self, request: Any, view: Any) -> bool:
        self.rate = self.get_rate()
        self.num_requests, self.duration = self.parse_rate(self.rate)
        return super(ScopedRateThrottle, self).allow_request(request, view)


@pytest.mark.parametrize("said", [{}, {"throttle_scope": "view"}])
def test_a_scope_that_the_class_has_itself(said: dict[str, str]) -> None:
    view = at(Pinned, **said)
    assert left(view(RequestFactory().get("/"))) == {"pinned": 1}
    assert codes(view, 2) == [200, 429]


class ByScope(SimpleRateThrottle):
    """One class whose instances have scopes of their own."""

    THROTTLE_RATES = {"burst": "2/min", "sustained": "3/day"}

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__()

    def get_cache_key(self, request: Any, view: Any) -> str:
        return self.cache_format % {"scope": self.scope, "ident": "anyone"}


@pytest.mark.parametrize("scopes", [["burst", "sustained"], ["sustained", "burst"]])
def test_instances_of_one_class_are_throttles_of_their_own(scopes: list[str]) -> None:
    def asking(*scopes: str) -> Any:
        return at(get_throttles=lambda view: [ByScope(scope) for scope in scopes])

    both = asking(*scopes)
    assert left(both(RequestFactory().get("/"))) == {"burst": 1, "sustained": 2}
    assert codes(both, 3) == [200, 429, 429]
    assert both(RequestFactory().get("/")).headers["Retry-After"] == "60"
    # Of which a refused request takes nothing.
    assert codes(asking("sustained"), 2) == [200, 429]


class Raising(UserRateThrottle):
    rate = "1/hour"
    scope = "raising"

    def throttle_failure(self) -> bool:
        raise Throttled(detail="Not now.", wait=self.wait())


def test_a_refusal_that_is_raised_is_published(client: Client) -> None:
    assert codes(at(Raising), 1) == [200]
    response = at(Raising)(RequestFactory().get("/"))
    assert (response.status_code, response.headers["Retry-After"]) == (429, "3600")
    assert response.data["detail"].startswith("Not now.")
    assert left(response) == {"raising": 0}


class Telling(UserRateThrottle):
    """Puts what is left into the answer, as many snippets do."""

    rate = "2/min"
    scope = "telling"
    num_requests: Any
    duration: Any

    def allow_request(self, request: Any, view: Any) -> bool:
        allowed = super().allow_request(request, view)
        if hasattr(self, "history"):
            reset = self.history[-1] + self.duration - self.now if self.history else 0
            view.headers["X-Left"] = f"{self.num_requests - len(self.history)} {reset}"
        return allowed


@exempt
class Spared(View):
    throttle_classes = [Telling]


urlpatterns = [path("spared", Spared.as_view())]


def test_a_throttle_that_tells_what_is_left(client: Client) -> None:
    view = at(Telling)
    answers = [view(RequestFactory().get("/")) for _ in range(2)]
    assert [each.headers["X-Left"] for each in answers] == ["1 60.0", "0 60.0"]
    assert client.get("/spared").headers["X-Left"] == "2 0"


def test_who_has_no_key_has_no_history() -> None:
    """As with DRF's: an instance has one once it has asked who it is."""

    class Nobody(Telling):
        def get_cache_key(self, request: Any, view: Any) -> None:
            return None

    assert not hasattr(Telling(), "history")
    assert "X-Left" not in at(Nobody)(RequestFactory().get("/")).headers


@pytest.mark.parametrize("number", [10**13, float("inf"), 2.5])
def test_numbers_of_any_size_and_kind(number: float) -> None:
    """DRF compares them with the length of a list."""

    class Some(UserRateThrottle):
        rate = "some"
        scope = "any"

        def parse_rate(self, rate: Any) -> Any:
            return number, 60

    expected = [200] * 3 + [429 if number == 2.5 else 200]
    assert codes(at(Some), 4) == expected


@pytest.mark.parametrize("read", [(1, 0.5), (1, 1000 * 86400)])
def test_windows_that_cannot_be_are_refused_by_name(read: Any) -> None:
    class Odd(UserRateThrottle):
        rate = "odd"

        def parse_rate(self, rate: Any) -> Any:
            return read

    with pytest.raises(ImproperlyConfigured, match=r"Odd\.parse_rate"):
        at(Odd)(RequestFactory().get("/"))


def test_who_switches_the_throttles_of_drf_off_switches_off_these(client: Client) -> None:
    """As tests of projects do for as long as they are about something else."""

    class Tight(UserRateThrottle):
        rate = "1/day"
        scope = "tight"

    name = "rest_framework.throttling.SimpleRateThrottle.allow_request"
    with mock.patch(name, return_value=True):
        assert codes(at(Tight), 3) == [200, 200, 200]
    assert codes(at(Tight), 2) == [200, 429]


def test_the_base_class_is_there_too() -> None:
    assert BaseThrottle is theirs.BaseThrottle
