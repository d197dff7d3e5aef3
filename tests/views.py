"""One limited view in every form that Django knows, sync and async."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.utils.decorators import method_decorator
from django.views import View

Body = Callable[[HttpRequest], HttpResponse]
Decorator = Callable[[Any], Any]

FORMS = [
    "function",
    "class",
    "dispatch",
    "get",
    "method",
    "own dispatch",
    "as_view",
    "partial",
    "bound method",
    "object",
]


def hello(request: HttpRequest) -> HttpResponse:
    return HttpResponse("hello")


def function(body: Body, is_async: bool) -> Any:
    def view(request: HttpRequest, word: str = "") -> HttpResponse:
        return body(request)

    async def aview(request: HttpRequest, word: str = "") -> HttpResponse:
        return await sync_to_async(body)(request)

    return aview if is_async else view


def view_class(
    body: Body, is_async: bool, on_method: Decorator | None = None, name: str = "Page"
) -> type[View]:
    def get(self: View, request: HttpRequest) -> HttpResponse:
        return body(request)

    async def aget(self: View, request: HttpRequest) -> HttpResponse:
        return await sync_to_async(body)(request)

    handler = aget if is_async else get
    handler.__qualname__ = f"{name}.{handler.__name__}"
    decorated = on_method(handler) if on_method else handler
    members = {"get": decorated, "post": decorated, "__module__": __name__}
    return type(name, (View,), members)


def limited_view(
    form: str, decorator: Decorator, body: Body = hello, is_async: bool = False
) -> Any:
    """A view as URLs take it, with a decorator around it."""
    if form == "function":
        return decorator(function(body, is_async))
    if form == "class":
        return decorator(view_class(body, is_async)).as_view()
    if form == "dispatch":
        return method_decorator(decorator, name="dispatch")(view_class(body, is_async)).as_view()
    if form == "get":
        return view_class(body, is_async, method_decorator(decorator)).as_view()
    if form == "method":
        return view_class(body, is_async, decorator).as_view()
    if form == "own dispatch":
        return own_dispatch(decorator, view_class(body, is_async)).as_view()
    if form == "as_view":
        return decorator(view_class(body, is_async).as_view())
    if form == "partial":
        return decorator(partial(function(body, is_async), word="x"))
    if form == "bound method":
        return decorator(view_object(body, is_async).page)
    assert form == "object", form
    return decorator(view_object(body, False))


def own_dispatch(decorator: Decorator, base: type[View]) -> type[View]:
    def dispatch(self: View, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return base.dispatch(self, request, *args, **kwargs)

    return type("Own", (base,), {"dispatch": decorator(dispatch), "__module__": __name__})


def view_object(body: Body, is_async: bool) -> Any:
    class Pages:
        def __call__(self, request: HttpRequest) -> HttpResponse:
            return body(request)

        def page(self, request: HttpRequest) -> HttpResponse:
            return body(request)

        async def apage(self, request: HttpRequest) -> HttpResponse:
            return await sync_to_async(body)(request)

    if is_async:
        Pages.page = Pages.apage  # type: ignore[method-assign,assignment]
    return Pages()


class AnyClient:
    """One way to call, whether the server and the view are sync or async."""

    def __init__(self, is_async: bool) -> None:
        # Errors of a view are answered, as by a server.
        kind: Any = AsyncClient if is_async else Client
        self.client = kind(raise_request_exception=False)
        self.is_async = is_async

    async def request(self, method: str, url: str = "/view", *args: Any, **kwargs: Any) -> Any:
        call = getattr(self.client, method)
        if self.is_async:
            return await call(url, *args, **kwargs)
        return await sync_to_async(call)(url, *args, **kwargs)

    async def get(self, url: str = "/view", **kwargs: Any) -> Any:
        return await self.request("get", url, **kwargs)

    async def post(self, url: str = "/view", *args: Any, **kwargs: Any) -> Any:
        return await self.request("post", url, *args, **kwargs)

    async def statuses(self, times: int, **kwargs: Any) -> list[int]:
        return [(await self.get(**kwargs)).status_code for _ in range(times)]


OURS = "ratelimits.middleware.RateLimitMiddleware"
PLAIN = f"{__name__}.plain_only"
# Django adapts what stands around or below a plain middleware.
CHAINS = {
    "alone": [OURS],
    "outside of a plain one": [OURS, PLAIN],
    "inside of a plain one": [PLAIN, OURS],
}


def plain_only(get_response: Any) -> Any:
    """A middleware that is not async."""

    def middleware(request: HttpRequest) -> Any:
        return get_response(request)

    return middleware


# The view's kind and the server's are independent in Django.
KINDS = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
SERVERS = pytest.mark.parametrize(
    "caller", [AnyClient(False), AnyClient(True)], ids=["wsgi", "asgi"]
)
