"""Views that do nothing, so that what a limit adds is all there is to see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.decorators import ratelimit
from ratelimits.throttling import PlanRateThrottle

from .bench import PLENTY
from .peers import DrfSpent, DrfThrottle, smart_throttle


def plain(request: HttpRequest) -> HttpResponse:
    return HttpResponse(b"ok")


async def aplain(request: HttpRequest) -> HttpResponse:
    return HttpResponse(b"ok")


limited = ratelimit()(plain)
limited_in_code = ratelimit(PLENTY, by="user", name="in-code")(plain)
alimited = ratelimit()(aplain)


class ApiView(APIView):
    def get(self, request: Request) -> Response:
        return Response({"ok": True})


class CachedView(APIView):
    def get(self, request: Request) -> Response:
        cache.get("benchmark")
        return Response({"ok": True})


class LimitedView(ApiView):
    throttle_classes = [PlanRateThrottle]


class SpentView(LimitedView):
    """For callers whose plan has nothing left."""

    throttle_scope = "spent"


class OwnView(ApiView):
    throttle_classes = [DrfThrottle]


class OwnSpentView(ApiView):
    throttle_classes = [DrfSpent]


def by_django_ratelimit() -> Callable[..., Any]:
    from django_ratelimit.decorators import ratelimit as limit

    made: Callable[..., Any] = limit(key="user", rate=PLENTY)(plain)
    return made


def by_smart() -> Callable[..., Any]:
    from django_smart_ratelimit import rate_limit

    made: Callable[..., Any] = rate_limit(key="user", rate=PLENTY, algorithm="token_bucket")(plain)
    return made


def by_smart_throttle() -> Callable[..., Any]:
    class SmartView(ApiView):
        throttle_classes = [smart_throttle("token_bucket")]

    return SmartView.as_view()
