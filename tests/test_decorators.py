from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client
from django.urls import path
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import TemplateView
from rest_framework.authentication import BasicAuthentication
from rest_framework.decorators import api_view, authentication_classes, permission_classes
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.decorators import exempt, ratelimit, throttle_cost
from ratelimits.rates import Rate
from ratelimits.testing import fresh_counts
from tests.doors import PROBLEM, is_silent, left, make_plan, policies, problem, request, statuses
from tests.views import FORMS, KINDS, SERVERS, AnyClient, hello, limited_view, view_class

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls(__name__),
    pytest.mark.usefixtures("still"),
]
urlpatterns: list[Any] = []


def serve(view: Any) -> None:
    urlpatterns[:] = [path("view", view)]


@KINDS
@SERVERS
@pytest.mark.parametrize("form", FORMS)
async def test_every_form_of_view(form: str, is_async: bool, caller: AnyClient) -> None:
    """Cases 64 and 65: the first passes, the second does not."""
    serve(limited_view(form, ratelimit("1/d", by="ip"), is_async=is_async))
    allowed, denied = await caller.get(), await caller.get()
    assert (allowed.status_code, allowed.content) == (200, b"hello")
    assert list(left(allowed).values()) == [0]
    body = problem(denied)
    assert body["violated-policies"] == policies(denied) == policies(allowed)
    assert denied.headers["Retry-After"] == "86400"


@KINDS
@SERVERS
async def test_error_of_the_view_stays_its_own(is_async: bool, caller: AnyClient) -> None:
    def fails(request: HttpRequest) -> HttpResponse:
        raise PermissionError

    serve(limited_view("function", ratelimit("2/d", by="ip"), fails, is_async))
    assert await caller.statuses(3) == [500, 500, 429]


def test_arguments_reach_the_view() -> None:
    """Also a request by its name."""
    view = ratelimit("2/d", by="ip")(lambda request, word: HttpResponse(word))
    assert view(request(), word="named").content == b"named"
    assert view(word="placed", request=request()).content == b"placed"
    assert view(request=request(), word="late").status_code == 429


def test_without_a_request_it_says_so() -> None:
    view = ratelimit("1/d", by="ip")(lambda: HttpResponse())
    with pytest.raises(TypeError, match="called without a request"):
        view()


def test_page_for_a_browser(client: Client) -> None:
    serve(limited_view("function", ratelimit("0/d", by="ip")))
    response = client.get("/view", HTTP_ACCEPT="text/html")
    assert response.status_code == 429
    assert b"<h1>Quota Exceeded</h1>" in response.content


def own_response(request: HttpRequest, decision: Any) -> HttpResponse:
    # As a template of the project's may do.
    return HttpResponse(f"slow down, {User.objects.count()}", status=429)


async def own_response_later(request: HttpRequest, decision: Any) -> HttpResponse:
    return HttpResponse(f"slow down, {await User.objects.acount()}", status=429)


@KINDS
@SERVERS
@pytest.mark.parametrize("own", ["own_response", "own_response_later"])
async def test_own_response(own: str, settings: Any, is_async: bool, caller: AnyClient) -> None:
    """Cases 51 and 65."""
    settings.RATELIMITS = {"RESPONSE": f"{__name__}.{own}"}
    serve(limited_view("function", ratelimit("0/d", by="ip"), is_async=is_async))
    response = await caller.get()
    assert response.status_code == 429
    assert response.content == b"slow down, 0"
    assert response.headers["Cache-Control"] == "no-store"
    assert list(left(response).values()) == [0]


@pytest.mark.parametrize("form", FORMS)
@KINDS
@SERVERS
async def test_the_plan_of_the_tenant(
    form: str, is_async: bool, caller: AnyClient, settings: Any
) -> None:
    settings.RATELIMITS = {"TENANT": by_header}
    await sync_to_async(make_plan)("api 20/d", "search 5/d search", "other 1/d other")
    serve(limited_view(form, ratelimit(scope="search", cost=5), is_async=is_async))
    allowed, denied = await caller.get(), await caller.get()
    assert left(allowed) == {"api": 15, "search": 0}
    assert denied.status_code == 429
    assert left(denied) == {"api": 15, "search": 0}
    other = await caller.get(headers={"X-Tenant": "acme"})
    assert left(other) == {"api": 15, "search": 0}


def by_header(request: HttpRequest) -> str | None:
    return request.headers.get("X-Tenant")


def test_streamed_and_empty_answers(client: Client) -> None:
    def body(request: HttpRequest) -> Any:
        return StreamingHttpResponse([b"a", b"b"])

    serve(limited_view("function", ratelimit("2/d", by="ip"), body))
    response: Any = client.get("/view")
    assert b"".join(response.streaming_content) == b"ab"
    assert left(response) == {"view": 1}


# What can't be counted, and what can't be decorated.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": "ten/m"}, '"ten/m" is not a rate'),
        ({"rate": ""}, "is not a rate"),
        ({"rate": 5}, "5 is not a rate"),
        ({"rate": "5/m", "by": "session"}, "'session' is not"),
        ({"rate": "5/m", "by": "header:"}, "'header:' is not"),
        ({"rate": "5/m", "by": "field"}, "'field' is not"),
        ({"rate": "5/m", "by": ""}, "'' is not"),
        ({"rate": "5/m", "by": None}, "None is not"),
        ({"rate": "5/m", "cost": -1}, "whole number"),
        ({"rate": "5/m", "cost": 1.5}, "whole number"),
        ({"rate": "5/m", "cost": True}, "whole number"),
        ({"rate": "5/m", "cost": None}, "whole number"),
        ({"rate": "5/m", "burst": 0}, "burst=0"),
        ({"rate": "5/m", "burst": -1}, "burst=-1"),
        ({"rate": "5/m", "burst": "3"}, "burst='3'"),
        ({"rate": "5/m", "burst": 2.5}, "burst=2.5"),
        ({"rate": "5/m", "burst": True}, "burst=True"),
        ({"rate": "5/m", "burst": 5, "algorithm": "fixed_window"}, "Only a token bucket"),
        ({"rate": "0/m", "burst": 5}, "refuses every request"),
        ({"rate": "5/m", "algorithm": "leaky"}, "'leaky' is not one of"),
        ({"rate": "5/m", "mode": "strict"}, "'strict' is not one of"),
        ({"rate": "5/month"}, "5/30d"),
        ({"rate": "20000/d", "algorithm": "sliding_log"}, "at most 10000"),
        ({"rate": "5/m", "methods": []}, "would limit nothing"),
        ({"rate": "5/m", "methods": ["HEAD"]}, "HEAD counts as GET"),
        ({"by": "ip"}, "by is the plan's to say"),
        ({"burst": 5}, "burst is the plan's to say"),
        ({"mode": "shadow"}, "mode is the plan's to say"),
        ({"algorithm": "fixed_window"}, "algorithm is the plan's to say"),
    ],
)
def test_what_can_not_be_counted_is_refused_at_its_definition(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ratelimit(**options)


def test_written_rates_are_ready(client: Client) -> None:
    serve(limited_view("function", ratelimit(Rate(3, 86400), by="ip")))
    assert left(client.get("/view")) == {"view": 2}


@api_view(["GET"])
def drf_function(request: Any) -> Response:
    return Response({})


class DrfView(APIView):
    def get(self, request: Any) -> Response:
        return Response({})


ASKING_WHO: dict[str, Any] = {
    "plan": ratelimit(),
    "tenant": ratelimit("1/d"),
    "user": ratelimit("1/d", by="user"),
    "callable by": ratelimit("1/d", by=lambda request: "x"),
    "callable rate": ratelimit(lambda request: "1/d", by="ip"),
    "callable cost": ratelimit("1/d", by="ip", cost=lambda request: 1),
}


@pytest.mark.parametrize("limit", ASKING_WHO.values(), ids=ASKING_WHO)
@pytest.mark.parametrize(
    "view",
    [drf_function, DrfView.as_view(), DrfView, login_required(drf_function)],
    ids=["function", "as_view", "class", "wrapped"],
)
def test_above_a_view_of_drf(view: Any, limit: Any) -> None:
    """Nobody is authenticated there, so that all would be counted as anonymous."""
    with pytest.raises(TypeError, match=r"can't stand above .* below @api_view"):
        limit(view)


def on_dispatch(form: str, limit: Any, base: Any) -> Any:
    class Own(base):  # type: ignore[misc]
        @limit
        def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
            return super().dispatch(request, *args, **kwargs)

    class Page(base):  # type: ignore[misc]
        pass

    view: Any = Own if form == "own dispatch" else method_decorator(limit, name="dispatch")(Page)
    return view.as_view()


@pytest.mark.parametrize("limit", ASKING_WHO.values(), ids=ASKING_WHO)
@pytest.mark.parametrize("form", ["dispatch", "own dispatch"])
def test_above_the_dispatch_of_a_view_of_drf(form: str, limit: Any) -> None:
    with pytest.raises(TypeError, match="can't stand above"):
        on_dispatch(form, limit, DrfView)(request())


@pytest.mark.parametrize("by", ["ip", "header:X-Key", "field:name"])
@pytest.mark.parametrize(
    "form", ["function", "as_view", "class", "wrapped", "dispatch", "own dispatch"]
)
def test_above_a_view_of_drf_by_what_needs_no_user(client: Client, form: str, by: str) -> None:
    """Case 64: and case 59, since who guesses at credentials is limited there."""

    class Closed(APIView):
        authentication_classes = [BasicAuthentication]
        permission_classes = [IsAuthenticated]

        def post(self, request: Any) -> Response:
            return Response(request.data)

    class Open(Closed):
        permission_classes = []

    @api_view(["POST"])
    @authentication_classes([BasicAuthentication])
    @permission_classes([])
    def function(request: Any) -> Response:
        return Response(request.data)

    def limited(kind: Any) -> Any:
        limit = ratelimit("1/d", by=by, name="guesses")
        if form in ("dispatch", "own dispatch"):
            return on_dispatch(form, limit, kind)
        if form == "class":
            page: Any = type("Page", (kind,), {})
            return limit(page).as_view()
        view = kind.as_view() if kind is Closed or form == "as_view" else function
        return limit(csrf_exempt(view) if form == "wrapped" else view)

    for body in ({"name": "bob"}, {"name": "ann", "file": SimpleUploadedFile("a.txt", b"x")}):
        with fresh_counts():
            serve(limited(Open))
            allowed, denied = client.post("/view", body), client.post("/view", body | {"file": b""})
            assert allowed.json()["name"] == body["name"]
            assert left(allowed) == left(denied) == {"guesses": 0}
            assert problem(denied)["violated-policies"] == ["guesses"]
    with fresh_counts():
        serve(limited(Closed))
        headers = {"Authorization": "Basic d3Jvbmc6d3Jvbmc="}
        codes = [client.post("/view", {"name": "bob"}, headers=headers) for _ in range(2)]
        assert [code.status_code for code in codes] == [401, 429]


@pytest.mark.parametrize("place", ["below", "method", "method_decorator"])
def test_below_drf(client: Client, place: str) -> None:
    """Case 64: where DRF's request arrives."""
    limit = ratelimit("1/d", by="user")

    def body(request: Any) -> Response:
        return Response({"data": request.data})

    class Page(APIView):
        @(limit if place == "method" else method_decorator(limit))
        def get(self, request: Any) -> Response:
            return body(request)

    serve(api_view(["GET"])(limit(body)) if place == "below" else Page.as_view())
    allowed, denied = client.get("/view"), client.get("/view")
    assert allowed.json() == {"data": {}}
    assert list(left(allowed).values()) == [0]
    assert problem(denied)["status"] == 429


def test_without_parentheses() -> None:
    """Told for a class at once, for a function when it is called."""
    bare: Any = ratelimit
    with pytest.raises(TypeError, match="with parentheses"):
        bare(view_class(hello, False))
    calls: list[Any] = [(request(),), (View(), request()), (request(), 7)]
    for arguments in calls:
        with pytest.raises(TypeError, match="with parentheses"):
            bare(hello)(*arguments)
    with pytest.raises(TypeError, match="with parentheses"):
        bare(hello)(request(), pk=1)


def test_class_that_is_no_view() -> None:
    with pytest.raises(TypeError, match="no method dispatch"):
        ratelimit("1/d", by="ip")(dict)


# What else is said at a view.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", ["above", "below", "above csrf_exempt"])
def test_exempt_views(client: Client, form: str, order: str) -> None:
    limit = ratelimit("0/d", by="ip")
    if order == "above":
        view = exempt(limited_view(form, limit))
    elif order == "below":
        view = limited_view(form, lambda view: limit(exempt(view)))
    else:
        view = exempt(csrf_exempt(limited_view(form, limit)))
    serve(view)
    response = client.get("/view")
    assert response.status_code == 200
    assert is_silent(response)


@pytest.mark.parametrize("form", ["function", "bound method", "partial", "object", "as_view"])
def test_exempt_leaves_the_view_as_it_is_elsewhere(form: str) -> None:
    view = limited_view(form, lambda view: view)
    marked = exempt(view)
    limit = ratelimit("0/d", by="ip")
    assert limit(marked)(request()).content == b"hello"
    assert limit(view)(request()).status_code == 429


@KINDS
@SERVERS
async def test_exempt_views_of_either_kind(is_async: bool, caller: AnyClient) -> None:
    def marked(view: Any) -> Any:
        return ratelimit("0/d", by="ip")(exempt(view))

    for form in ("function", "method", "as_view"):
        serve(limited_view(form, marked, is_async=is_async))
        assert (await caller.get()).content == b"hello"


def test_a_cost_may_not_be_less_than_nothing_later() -> None:
    view = ratelimit("5/d", by="ip", cost=lambda request: -5)(hello)
    with pytest.raises(ValueError, match="whole number"):
        view(request())


def test_throttle_cost_leaves_a_view_as_it_is() -> None:
    assert throttle_cost(3)(hello) is hello
    del hello.throttle_cost  # type: ignore[attr-defined]


def test_a_template_view(client: Client, settings: Any) -> None:
    """Whose response is rendered after the decorator has seen it."""
    loaders = [("django.template.loaders.locmem.Loader", {"page.html": "{{ view.kwargs }}"})]
    engine = "django.template.backends.django.DjangoTemplates"
    settings.TEMPLATES = [{"BACKEND": engine, "OPTIONS": {"loaders": loaders}}]
    serve(ratelimit("1/d", by="ip")(TemplateView.as_view(template_name="page.html")))
    allowed, denied = client.get("/view"), client.get("/view")
    assert allowed.content == b"{}"
    assert left(allowed) == {"TemplateView": 0}
    assert denied.headers["Content-Type"] == PROBLEM
    assert statuses(lambda: client.get("/view"), 1) == [429]
