"""The decorator among Django's own, and under a server that has an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial, update_wrapper
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required, permission_required
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.urls import path
from django.views.decorators.cache import cache_page, never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from django.views.decorators.vary import vary_on_headers

from ratelimits.decorators import ratelimit
from ratelimits.stores import get_store
from tests.doors import is_silent, left, make_plan
from tests.views import FORMS, KINDS, SERVERS, AnyClient, hello, limited_view

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]
urlpatterns: list[Any] = []
once = ratelimit("1/d", by="ip", name="once")


def serve(view: Any) -> None:
    urlpatterns[:] = [path("view", view), path("accounts/login/", hello)]


OTHERS: dict[str, Any] = {
    "csrf_exempt": csrf_exempt,
    "never_cache": never_cache,
    "vary_on_headers": vary_on_headers("X-Own"),
    "login_required": login_required,
    "permission_required": permission_required([]),
}


@KINDS
@SERVERS
@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("other", OTHERS)
async def test_over_and_under_others(
    other: str, above: bool, is_async: bool, caller: AnyClient
) -> None:
    def both(view: Any) -> Any:
        return once(OTHERS[other](view)) if above else OTHERS[other](once(view))

    await caller.client.aforce_login(await User.objects.acreate(username="ann"))
    serve(limited_view("function", both, is_async=is_async))
    allowed, denied = await caller.get(), await caller.get()
    assert (allowed.status_code, allowed.content) == (200, b"hello")
    assert left(allowed) == {"once": 0}
    assert denied.status_code == 429


def test_under_login_required_strangers_are_not_counted(client: Client) -> None:
    serve(login_required(once(hello)))
    redirect = client.get("/view")
    assert redirect.status_code == 302
    assert is_silent(redirect)
    client.force_login(User.objects.create(username="ann"))
    assert [client.get("/view").status_code for _ in range(2)] == [200, 429]


def test_over_login_required_strangers_are_counted(client: Client) -> None:
    serve(once(login_required(hello)))
    redirect = client.get("/view")
    assert redirect.status_code == 302
    # With nothing left a client should follow even so.
    assert "RateLimit" not in redirect.headers
    assert client.get("/view").status_code == 429


@pytest.mark.parametrize("above", [True, False])
def test_require_post(client: Client, above: bool) -> None:
    serve(once(require_POST(hello)) if above else require_POST(once(hello)))
    assert client.get("/view").status_code == 405
    assert client.post("/view").status_code == (429 if above else 200)


def test_a_view_in_a_transaction(client: Client) -> None:
    """What was counted stays so if the view is rolled back."""

    def body(request: HttpRequest) -> HttpResponse:
        Group.objects.create(name="new")
        raise ValueError

    make_plan("api 2/d")
    serve(ratelimit()(transaction.atomic(transaction.atomic(body))))
    client.raise_request_exception = False
    assert [client.get("/view").status_code for _ in range(3)] == [500, 500, 429]
    assert not Group.objects.exists()


@pytest.mark.parametrize("inside", [True, False])
def test_cached_views(client: Client, inside: bool, settings: Any) -> None:
    """Case 56: outside of the cache all are counted, and each sees its own numbers."""
    cache.clear()
    settings.MIDDLEWARE = ["ratelimits.middleware.RateLimitMiddleware"]
    calls = []

    def body(request: HttpRequest) -> HttpResponse:
        calls.append(1)
        return HttpResponse(str(len(calls)))

    limit = ratelimit("2/d", by="ip", name="two")
    serve(cache_page(60)(limit(body)) if inside else limit(cache_page(60)(body)))
    first = client.get("/view")
    other = client.get("/view", REMOTE_ADDR="192.0.2.9")
    assert left(first) == {"two": 1}
    assert first.content == other.content == b"1"
    if inside:
        # Nobody counted it, so nobody may say how much is left.
        assert is_silent(other)
    else:
        assert left(other) == {"two": 1}
        assert [client.get("/view").status_code for _ in range(2)] == [200, 429]
        refused = client.get("/view")
        assert refused.headers["Cache-Control"] == "no-store"
        fine = client.get("/view", REMOTE_ADDR="192.0.2.9")
        assert (fine.status_code, left(fine)) == (200, {"two": 0})
    assert len(calls) == 1


@pytest.mark.parametrize("form", ["function", "class", "as_view", "partial"])
@pytest.mark.parametrize("public", [True, False])
def test_marks_of_the_view_are_kept(client: Client, settings: Any, form: str, public: bool) -> None:
    """By which LoginRequiredMiddleware knows public views."""
    settings.MIDDLEWARE = [
        *settings.MIDDLEWARE,
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
    ]
    view = limited_view(form, ratelimit("1/d", by="ip"))
    inner = limited_view("function", lambda view: view)
    inner.login_required = not public
    if form == "function":
        view = once(inner)
    elif form == "partial":
        view = once(update_wrapper(partial(inner), inner))
    else:
        view.login_required = not public
    serve(view)
    assert client.get("/view").status_code == (200 if public else 302)


def test_handler403_is_not_asked(client: Client, settings: Any) -> None:
    """Case 54: with DEBUG or without, a refusal is no 403."""
    for debug in (True, False):
        settings.DEBUG = debug
        serve(ratelimit("0/d", by="ip")(hello))
        assert client.get("/view").status_code == 429


def handler403(request: HttpRequest, exception: Exception) -> HttpResponse:
    return HttpResponse("handler403", status=403)


# The event loop.


@pytest.fixture
def asked_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each plain call to the store was made on an event loop's thread."""
    store, calls = get_store(), []
    assert store is not None
    inner: Any = store.store  # type: ignore[attr-defined]
    run = inner.run

    def running(*args: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            calls.append(False)
        else:
            calls.append(True)
        return run(*args)

    async def arunning(*args: Any) -> Any:
        return await sync_to_async(running, thread_sensitive=False)(*args)

    monkeypatch.setattr(inner, "run", running)
    # The memory's own does not block; here it stands for one that does.
    monkeypatch.setattr(inner, "arun", arunning)
    yield calls


@KINDS
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("by", ["ip", "plan"])
async def test_the_store_is_never_asked_on_the_loop(
    form: str, by: str, is_async: bool, async_client: AsyncClient, asked_in: list[bool]
) -> None:
    """Case 65."""
    await sync_to_async(make_plan)("api 9/d")
    limit = ratelimit() if by == "plan" else ratelimit("9/d", by=by)
    serve(limited_view(form, limit, is_async=is_async))
    assert (await async_client.get("/view")).status_code == 200
    assert asked_in
    assert not any(asked_in)


@KINDS
async def test_views_still_use_the_orm(is_async: bool, async_client: AsyncClient) -> None:
    """Case 65: in the thread where their connection is."""

    def body(request: HttpRequest) -> HttpResponse:
        return HttpResponse(str(User.objects.count()))

    await sync_to_async(make_plan)("api 9/d")
    serve(limited_view("function", ratelimit(), body, is_async))
    response = await async_client.get("/view")
    assert (response.content, left(response)) == (b"0", {"api": 8})


async def test_concurrent_requests_are_counted_each(async_client: AsyncClient) -> None:
    await sync_to_async(make_plan)("api 20/d")
    serve(limited_view("function", ratelimit(), is_async=True))
    answers = await asyncio.gather(*(async_client.get("/view") for _ in range(30)))
    assert sorted(answer.status_code for answer in answers) == [200] * 20 + [429] * 10
    assert {left(answer)["api"] for answer in answers} == set(range(20))
