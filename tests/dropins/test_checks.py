"""What `manage.py check --deploy` says of throttle classes that believe whoever calls."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import CheckMessage
from django.urls import include, path
from rest_framework.decorators import api_view, throttle_classes
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import AnonRateThrottle as Theirs
from rest_framework.views import APIView

from ratelimits.throttling import AnonRateThrottle, PlanRateThrottle, UserRateThrottle
from tests.checking import ids, messages
from tests.settings import redis_caches
from tests.views import hello

pytestmark = pytest.mark.urls(__name__)


class Burst(UserRateThrottle):
    rate = "10/m"


class ByKey(UserRateThrottle):
    rate = "10/m"

    def get_ident(self, request: Request) -> str:
        return str(request.headers.get("X-Forwarded-By-Us"))


class Orders(APIView):
    throttle_classes: Any = [Burst, PlanRateThrottle]


class Sealed(APIView):
    throttle_classes: Any = [ByKey, PlanRateThrottle, Theirs]


@api_view(["GET"])
@throttle_classes([AnonRateThrottle])
def prices(request: Request) -> Response:
    return Response({})


urlpatterns = [path("hello", hello), path("orders", Orders.as_view())]
sealed = [path("", include([path("sealed", Sealed.as_view())])), path("hello", hello)]
functions = [path("prices", prices)]


# Another check would tell of one that is shared.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "ratelimits": redis_caches("redis://127.0.0.1:6379/1")["default"],
}


def told(**settings: Any) -> list[CheckMessage]:
    ours = {"CACHE": "ratelimits", **settings.pop("RATELIMITS", {})}
    return messages(deploy=True, CACHES=CACHES, RATELIMITS=ours, **settings)


def proxies(number: int | None, **settings: Any) -> list[str | None]:
    found = told(REST_FRAMEWORK={"NUM_PROXIES": number}, **settings)
    return [message.id for message in found]


def test_whoever_writes_the_field_is_believed() -> None:
    (message,) = told(RATELIMITS={"TRUSTED_PROXIES": 2})
    assert message.id == "ratelimits.W024"
    assert message.msg.startswith("Burst: callers without a login are told apart")
    assert message.hint is not None
    assert message.hint.endswith('REST_FRAMEWORK = {"NUM_PROXIES": 2, ...}')


def test_functions_too() -> None:
    assert proxies(None, ROOT_URLCONF=_urls(functions)) == ["ratelimits.W024"]


@pytest.mark.parametrize("number", [0, 1])
def test_a_number_is_all_that_is_asked(number: int) -> None:
    assert proxies(number) == []


def test_what_goes_by_something_else() -> None:
    assert proxies(None, ROOT_URLCONF=_urls(sealed)) == []


def test_only_before_deployment() -> None:
    assert ids() == []
    assert proxies(None, RATELIMITS={"MODE": "off"}) == []
    assert proxies(None, ROOT_URLCONF=None) == []


def _urls(patterns: list[Any]) -> Any:
    return type("Urls", (), {"urlpatterns": patterns})
