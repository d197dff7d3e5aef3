"""The door that stands outside of views."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve

from .conf import conf
from .effects import Flow, adrive, drive
from .exceptions import RateLimited
from .flow import at_door, at_view, is_waiting, settle
from .limits import Decision
from .places import has_door, is_exempt_view, passes_door
from .publishing.responses import publish, refusal
from .requests import decision_of


class RateLimitMiddleware:
    """Publishes for all doors, and limits what no view does.

    Before anything else it counts the service's limits per address; under the prefixes of
    PROTECT it counts the plan for views without a door of their own. A RateLimited that a view
    raises becomes an answer. Put it outside of caches, and inside of CORS.
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
        decision = drive(at_door(request, _is_exempt))
        if not decision.allowed:
            return refusal(request, decision)
        response = self.get_response(request)
        if is_waiting(request):
            # Answered before any door was passed, so that the first one has the last word.
            decision = drive(settle(request))
            if not decision.allowed:
                return refusal(request, decision)
        return self._published(request, response)

    async def _acall(self, request: HttpRequest) -> HttpResponseBase:
        self._mark(request)
        decision = await adrive(at_door(request, _is_exempt))
        if not decision.allowed:
            return await sync_to_async(refusal, thread_sensitive=True)(request, decision)
        response = await self.get_response(request)
        if is_waiting(request):
            decision = await adrive(settle(request))
            if not decision.allowed:
                return await sync_to_async(refusal, thread_sensitive=True)(request, decision)
        return self._published(request, response)

    def _process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        door = _door_of(request, view)
        if door is None:
            return None
        decision = drive(door)
        return None if decision.allowed else refusal(request, decision)

    async def _aprocess_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        door = _door_of(request, view, is_async=True)
        if door is None:
            return None
        decision = await adrive(door)
        if decision.allowed:
            return None
        return await sync_to_async(refusal, thread_sensitive=True)(request, decision)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, RateLimited):
            return None
        request.ratelimit = _added(decision_of(request), error.decision)  # type: ignore[attr-defined]
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
        match = resolve(request.path_info, getattr(request, "urlconf", None))
    except Resolver404:
        return False
    return is_exempt_view(match.func, request.method)


def _door_of(request: HttpRequest, view: Any, is_async: bool = False) -> Flow[Decision] | None:
    """What is still to be taken before a view, if it does not see to that itself."""
    if is_protected(request.path_info, view, request.method):
        return at_view(request, is_async=is_async)
    if is_waiting(request) and not passes_door(view, request.method):
        return settle(request)
    return None


def is_protected(path: str, view: Any, method: str | None) -> bool:
    """Whether the middleware counts the plan for a view, since no other door limits it."""
    prefixes = conf.PROTECT
    if not prefixes:
        return False
    prefixes = (prefixes,) if isinstance(prefixes, str) else tuple(prefixes)
    if not path.startswith(prefixes):
        return False
    return not is_exempt_view(view, method) and not has_door(view, method)


def _added(before: Decision | None, refused: Decision) -> Decision:
    """A refusal together with what else was counted of the request."""
    told = {outcome.limit for outcome in refused.outcomes}
    rest = [outcome for outcome in (before.outcomes if before else ()) if outcome.limit not in told]
    return replace(refused, outcomes=(*rest, *refused.outcomes))
