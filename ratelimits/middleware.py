"""The door that stands outside of views."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve

from .conf import conf
from .decorators import is_exempt_view
from .effects import adrive, drive
from .exceptions import RateLimited
from .flow import at_door
from .limiter import atake, take
from .publishing.responses import publish, refusal
from .requests import decision_of


class RateLimitMiddleware:
    """Publishes for all doors, and limits what no view does.

    Before anything else it counts the service's limits per address; under the prefixes of
    PROTECT it counts the plan for views without a door of their own. A RateLimited that is
    raised anywhere becomes an answer. Put it outside of caches, and inside of CORS.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)
            self.process_view: Any = self._aprocess_view
        else:
            self.process_view = self._process_view

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self.is_async:
            return self._acall(request)
        self._mark(request)
        if not _is_exempt(request):
            decision = drive(at_door(request))
            if not decision.allowed:
                return refusal(request, decision)
        return self._published(request, self.get_response(request))

    async def _acall(self, request: HttpRequest) -> HttpResponseBase:
        self._mark(request)
        if not _is_exempt(request):
            decision = await adrive(at_door(request))
            if not decision.allowed:
                return await sync_to_async(refusal, thread_sensitive=True)(request, decision)
        return self._published(request, await self.get_response(request))

    def _process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        if not _is_protected(request, view):
            return None
        decision = take(request)
        return None if decision.allowed else refusal(request, decision)

    async def _aprocess_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        if not _is_protected(request, view):
            return None
        decision = await atake(request)
        if decision.allowed:
            return None
        return await sync_to_async(refusal, thread_sensitive=True)(request, decision)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, RateLimited):
            return None
        request.ratelimit = error.decision  # type: ignore[attr-defined]
        return refusal(request, error.decision)

    def _mark(self, request: HttpRequest) -> None:
        request._ratelimits_middleware = True  # type: ignore[attr-defined]

    def _published(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        decision = decision_of(request)
        if decision is not None:
            publish(response, decision)
        return response


def _is_exempt(request: HttpRequest) -> bool:
    """Whether the view that a request is for is exempt from all doors."""
    try:
        return is_exempt_view(resolve(request.path_info, getattr(request, "urlconf", None)).func)
    except Resolver404:
        return False


def _is_protected(request: HttpRequest, view: Any) -> bool:
    prefixes = conf.PROTECT
    if not prefixes or not request.path.startswith(tuple(prefixes)):
        return False
    return not is_exempt_view(view) and not _has_door(view)


def _has_door(view: Any) -> bool:
    """Whether the view, or a throttle of its class, counts by itself."""
    if hasattr(view, "_ratelimits"):
        return True
    cls = getattr(view, "cls", None) or getattr(view, "view_class", None)
    if hasattr(getattr(cls, "dispatch", None), "_ratelimits"):
        return True
    throttles = getattr(cls, "throttle_classes", ())
    return any(getattr(throttle, "is_ratelimits_door", False) for throttle in throttles)
