"""The drop-in throttles while a project's tests have others in the place of DRF's methods."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from django.test import RequestFactory
from rest_framework import throttling as theirs
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from ratelimits.throttling import ScopedRateThrottle, SimpleRateThrottle, UserRateThrottle
from tests.doors import statuses

pytestmark = pytest.mark.usefixtures("still")

RATES: dict[str, str | None] = {"view": "2/day", "tight": "1/day"}


class View(APIView):
    throttle_scope = "view"

    def get(self, request: Any) -> Response:
        return Response({})


class Scoped(ScopedRateThrottle):
    THROTTLE_RATES = RATES


class Tight(UserRateThrottle):
    THROTTLE_RATES = RATES
    scope = "tight"


class Pinned(ScopedRateThrottle):
    """With a scope of its own, past the method that asks the view for one."""

    THROTTLE_RATES = RATES
    scope = "tight"

    def allow_request(self, request: Any, view: Any) -> bool:
        self.num_requests, self.duration = self.parse_rate("1/day")
        self.rate = "1/day"
        return super(ScopedRateThrottle, self).allow_request(request, view)


def codes(kind: Any, times: int) -> list[int]:
    made: Any = type("Made", (View,), {"throttle_classes": [kind]})
    view = made.as_view()
    return statuses(lambda: view(RequestFactory().get("/")), times)


def replaced(kind: Any, name: str, **options: Any) -> Any:
    """As `patch("rest_framework.throttling.ScopedRateThrottle.allow_request", ...)` does."""
    return mock.patch(f"rest_framework.throttling.{kind.__name__}.{name}", **options)


@pytest.mark.parametrize(
    ("kind", "switched"),
    [
        (Tight, theirs.SimpleRateThrottle),
        (Tight, theirs.UserRateThrottle),
        (Scoped, theirs.SimpleRateThrottle),
        (Scoped, theirs.ScopedRateThrottle),
        (Pinned, theirs.SimpleRateThrottle),
    ],
)
def test_who_switches_throttles_off_switches_off_these(kind: Any, switched: Any) -> None:
    with replaced(switched, "allow_request", return_value=True):
        assert codes(kind, 4) == [200] * 4
    assert codes(kind, 3)[-1] == 429


def test_a_class_that_lets_pass_when_the_cache_is_away() -> None:
    class Resilient(Scoped):
        def allow_request(self, request: Any, view: Any) -> bool:
            try:
                return super().allow_request(request, view)
            except ConnectionError:
                return True

    with replaced(theirs.ScopedRateThrottle, "allow_request", side_effect=ConnectionError):
        assert codes(Resilient, 3) == [200] * 3


def test_a_refusal_that_is_made_up() -> None:
    refusing = replaced(theirs.SimpleRateThrottle, "allow_request", return_value=False)
    waiting = replaced(theirs.SimpleRateThrottle, "wait", return_value=7)
    with refusing, waiting:
        assert codes(Tight, 1) == [429]
        assert Tight().wait() == 7
    # Also after a refusal of ours.
    throttle, request = Tight(), APIRequestFactory().get("/")
    assert [throttle.allow_request(_asked(request), View()) for _ in range(2)] == [True, False]
    with replaced(theirs.SimpleRateThrottle, "wait", return_value=7):
        assert throttle.wait() == 7


def _asked(request: Any) -> Any:
    request.user = SimpleNamespace(is_authenticated=False)
    return request


def test_a_key_that_is_made_up() -> None:
    view: Any = SimpleNamespace(throttle_scope="view")
    request: Any = RequestFactory().get("/")
    with replaced(theirs.ScopedRateThrottle, "get_cache_key", return_value="made up") as made:
        assert Scoped().get_cache_key(request, view) == "made up"
        assert codes(Scoped, 3) == [200, 200, 429]
    assert made.call_args_list[0] == mock.call(request, view)
    with replaced(theirs.ScopedRateThrottle, "get_cache_key", return_value=None):
        assert codes(Scoped, 4) == [200] * 4


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        (Scoped, theirs.ScopedRateThrottle),
        (Scoped, theirs.SimpleRateThrottle),
        (Tight, theirs.SimpleRateThrottle),
    ],
)
def test_a_rate_that_is_made_up(kind: Any, changed: Any) -> None:
    with replaced(changed, "parse_rate", return_value=(3, 60)):
        assert codes(kind, 4) == [200, 200, 200, 429]


def test_a_key_by_the_class_of_drf_that_comes_first() -> None:
    class Both(ScopedRateThrottle, UserRateThrottle):
        THROTTLE_RATES = RATES

    class Theirs(theirs.ScopedRateThrottle, theirs.UserRateThrottle):
        THROTTLE_RATES = RATES

    request: Any = _asked(APIRequestFactory().get("/"))
    keys: list[Any] = []
    for kind in (Both, Theirs):
        throttle: SimpleRateThrottle | Any = kind()
        assert throttle.allow_request(request, View())
        keys.append(throttle.get_cache_key(request, View()))
    assert keys[0] == keys[1] and "_view_" in keys[0]
