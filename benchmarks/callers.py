"""Who calls: known by a header, without a query, so that a door's own cost is all there is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.utils.decorators import sync_and_async_middleware
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request


class Caller:
    """As much of a user as limiters look at."""

    is_authenticated = True
    is_anonymous = False
    is_active = True

    def __init__(self, pk: int) -> None:
        self.pk = self.id = pk


def caller_of(request: HttpRequest) -> Caller:
    return Caller(int(request.META.get("HTTP_X_CALLER", "0")))


@sync_and_async_middleware
def known(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Django's AuthenticationMiddleware, without its session and its query."""

    def middleware(request: HttpRequest) -> Any:
        request.user = caller_of(request)  # type: ignore[assignment]
        return get_response(request)

    async def amiddleware(request: HttpRequest) -> Any:
        request.user = caller_of(request)  # type: ignore[assignment]
        answer: Awaitable[Any] = get_response(request)
        return await answer

    return amiddleware if iscoroutinefunction(get_response) else middleware


class Known(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[Any, None]:
        return caller_of(request), None
