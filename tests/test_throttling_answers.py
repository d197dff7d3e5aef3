from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from django.test import Client
from django.urls import path
from django.utils.translation import gettext_lazy
from rest_framework import exceptions
from rest_framework.renderers import (
    AdminRenderer,
    BaseRenderer,
    BrowsableAPIRenderer,
    JSONRenderer,
    StaticHTMLRenderer,
    TemplateHTMLRenderer,
)
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView, exception_handler

from ratelimits.throttling import PlanRateThrottle, PlanThrottled
from tests.doors import BROWSER, PROBLEM, for_everyone, left, make_plan, problem

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls(__name__),
    pytest.mark.usefixtures("still"),
]


class Csv(BaseRenderer):
    media_type = "text/csv"
    format = "csv"

    def render(self, data: Any, *args: Any) -> bytes:
        return b"a,b"


class Limited(APIView):
    throttle_classes = [PlanRateThrottle]
    renderer_classes: Any = [JSONRenderer]
    handler: Callable[..., Any] = exception_handler

    def get(self, request: Request) -> Response:
        return Response({"fine": True})

    def get_exception_handler(self) -> Any:
        return type(self).handler


class Browsable(Limited):
    renderer_classes = [JSONRenderer, BrowsableAPIRenderer]


class BrowsableFirst(Limited):
    renderer_classes = [BrowsableAPIRenderer, JSONRenderer]


class Admin(Limited):
    renderer_classes = [JSONRenderer, AdminRenderer]


class Template(Limited):
    renderer_classes = [TemplateHTMLRenderer]


class Static(Limited):
    renderer_classes = [StaticHTMLRenderer]


class Other(Limited):
    renderer_classes = [Csv]


def refused(client: Client, view: type[APIView], accept: str = "*/*", query: str = "") -> Any:
    """What a view answers when nothing is left."""
    make_plan("api 0/d")
    return request_to(client, view, accept, query)


def request_to(client: Client, view: type[APIView], accept: str = "*/*", query: str = "") -> Any:
    urlpatterns[:] = [path("view", view.as_view())]
    return client.get(f"/view{query}", HTTP_ACCEPT=accept)


urlpatterns: list[Any] = []


@pytest.mark.parametrize(
    ("view", "accept"),
    [
        (Limited, "*/*"),
        (Limited, "application/json"),
        (Limited, "application/json, application/problem+json"),
        (Limited, BROWSER),
        (Browsable, "*/*"),
        (Browsable, "application/json"),
        (BrowsableFirst, "*/*"),
        (BrowsableFirst, "text/html;q=0.5, application/json"),
        (Admin, "*/*"),
        (Template, "*/*"),
        (Static, "*/*"),
        (Other, "*/*"),
        (Other, "text/csv"),
    ],
)
def test_problem_for_programs(client: Client, view: type[APIView], accept: str) -> None:
    """Whatever the view renders otherwise."""
    response = refused(client, view, accept)
    body = problem(response)
    assert response.status_code == 429
    assert body["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert body["violated-policies"] == ["api"]
    assert body["detail"] == "No such requests are allowed for this address."
    assert body["limit"] == 0


@pytest.mark.parametrize("view", [Browsable, BrowsableFirst, Admin])
@pytest.mark.parametrize(("accept", "query"), [(BROWSER, ""), ("*/*", "?format={format}")])
def test_browsable_api_shows_the_problem(
    client: Client, view: type[Limited], accept: str, query: str
) -> None:
    format_ = "admin" if view is Admin else "api"
    response = refused(client, view, accept, query.format(format=format_))
    assert response.status_code == 429
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    page = response.content.decode()
    assert "No such requests are allowed for this address." in page
    assert left(response) == {"api": 0}


@pytest.mark.parametrize("view", [Template, Static])
def test_our_page_where_drf_has_only_a_status_line(client: Client, view: type[APIView]) -> None:
    response = refused(client, view, BROWSER)
    assert response.status_code == 429
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "<h1>Quota Exceeded</h1>" in response.content.decode()


def test_the_projects_own_page_for_errors(client: Client, settings: Any) -> None:
    """By DRF's name for it, with the problem's members."""
    template = "{{ status_code }}: {{ detail }} ({{ title }})"
    loaders = [("django.template.loaders.locmem.Loader", {"429.html": template})]
    settings.TEMPLATES = [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {"loaders": loaders},
        }
    ]
    response = refused(client, Template, BROWSER)
    assert response.content == (
        b"429: No such requests are allowed for this address. (Quota Exceeded)"
    )


def test_whole_problem(client: Client) -> None:
    make_plan("api 1/d")
    request_to(client, Limited)
    response = request_to(client, Limited)
    body = problem(response)
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}\?=[\w-]+", body.pop("instance"))
    assert body == {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Quota Exceeded",
        "status": 429,
        "detail": "Limit is 1 request per day for this address.",
        "violated-policies": ["api"],
        "limit": 1,
        "remaining": 0,
        "reset": 86400,
        "retry_after": 86400,
        "cost": 1,
        "retryable": True,
    }
    assert response.headers["Retry-After"] == "86400"


def test_service_limit_for_everyone_is_503(client: Client) -> None:
    make_plan()
    for_everyone("0/s")
    response = request_to(client, Limited)
    assert response.status_code == 503
    assert problem(response)["type"].endswith("#temporary-reduced-capacity")
    assert int(response.headers["Retry-After"]) >= 60
    assert left(response) == {"api": 10}


def own_body(error: Exception, context: Any) -> Response:
    return Response({"e": 1}, status=429)


def own_type(error: Exception, context: Any) -> Response:
    return Response({"e": 1}, status=429, content_type="application/vnd.own+json")


def same_words(error: Any, context: Any) -> Response:
    return Response({"detail": f"{error.detail}"}, status=429)


def wrapping(error: Exception, context: Any) -> Any:
    response = exception_handler(error, context)
    assert response is not None
    response.data = {"error": response.data}
    return response


def taking_apart(error: Any, context: Any) -> Response:
    """As packages do that make all errors of a project alike."""
    codes, details = error.get_codes(), error.get_full_details()
    data = {"codes": codes, "details": details, "text": str(error), "wait": error.wait}
    return Response(data, status=error.status_code)


def adding(error: Exception, context: Any) -> Any:
    """The example in DRF's documentation."""
    response = exception_handler(error, context)
    assert response is not None
    response.data["status_code"] = response.status_code
    response.data["day"] = date(2026, 11, 30)
    response.data["title"] = gettext_lazy("Yes")
    return response


@pytest.mark.parametrize(
    ("handler", "body"),
    [
        (own_body, {"e": 1}),
        (own_type, {"e": 1}),
        (same_words, {"detail": "Limit is 1 request per day for this address."}),
        (wrapping, {"error": {"detail": "Limit is 1 request per day for this address."}}),
        (
            taking_apart,
            {
                "codes": "throttled",
                "details": {
                    "message": "Limit is 1 request per day for this address.",
                    "code": "throttled",
                },
                "text": "Limit is 1 request per day for this address.",
                "wait": 86400,
            },
        ),
    ],
)
def test_own_exception_handler(client: Client, handler: Any, body: Any) -> None:
    """Case 51: the fields are ours, the body and its type are the project's."""
    make_plan("api 1/d")
    view = type("View", (Limited,), {"handler": staticmethod(handler)})
    request_to(client, view)
    response = request_to(client, view)
    assert response.status_code == 429
    assert response.json() == body
    assert response.headers["Content-Type"] == (
        "application/vnd.own+json" if handler is own_type else "application/json"
    )
    assert response.headers["Retry-After"] == "86400"
    assert response.headers["Cache-Control"] == "no-store"
    assert left(response) == {"api": 0}


def test_exception_handler_that_adds_a_member_extends_the_problem(client: Client) -> None:
    view = type("View", (Limited,), {"handler": staticmethod(adding)})
    body = problem(refused(client, view))
    assert (body["status_code"], body["day"], body["title"]) == (429, "2026-11-30", "Yes")
    assert body["violated-policies"] == ["api"]


class Logging(Limited):
    seen: list[Any] = []

    def throttled(self, request: Request, wait: float | None) -> Any:
        self.seen.append(wait)
        super().throttled(request, wait)  # type: ignore[arg-type]


class Quiet(Limited):
    def throttled(self, request: Request, wait: float | None) -> Any:
        pass


class Worded(Limited):
    def throttled(self, request: Request, wait: float | None) -> Any:
        raise exceptions.Throttled(detail=f"Slow down for {wait} s")


class Disguised(Limited):
    def throttled(self, request: Request, wait: float | None) -> Any:
        raise exceptions.PermissionDenied("never mind")


def test_throttled_that_only_looks_on(client: Client) -> None:
    Logging.seen.clear()
    make_plan("api 1/d")
    request_to(client, Logging)
    assert problem(request_to(client, Logging))["retry_after"] == 86400
    assert Logging.seen == [86400]


def test_throttled_that_raises_nothing_lets_nobody_through(client: Client) -> None:
    assert problem(refused(client, Quiet))["violated-policies"] == ["api"]


@pytest.mark.parametrize(
    ("view", "status", "detail"),
    [(Worded, 429, "Slow down for 86400 s"), (Disguised, 403, "never mind")],
)
def test_throttled_in_its_own_words(
    client: Client, view: type[APIView], status: int, detail: str
) -> None:
    make_plan("api 1/d")
    request_to(client, view)
    response = request_to(client, view)
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/json"
    assert response.json()["detail"].startswith(detail)
    assert response.headers["Retry-After"] == "86400"
    assert left(response) == {"api": 0}


def throttle(wait: float | None, allowed: bool = False) -> Any:
    """A throttle of the project's own."""

    class Theirs(BaseThrottle):
        calls = 0

        def allow_request(self, request: Any, view: Any) -> bool:
            type(self).calls += 1
            return allowed

        def wait(self) -> float | None:
            return wait

    return Theirs


def beside(*throttles: type[BaseThrottle]) -> type[APIView]:
    return type("Beside", (Limited,), {"throttle_classes": list(throttles)})


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("wait", "told"), [(None, 43200), (5, 43200), (43200.5, 43201), (86400, 86400)]
)
def test_the_longest_wait_of_all_throttles(
    client: Client, first: bool, wait: float | None, told: int
) -> None:
    """Case 52: also of one that knows none. Never less than any of them asks for."""
    make_plan("api 2/d")
    theirs = throttle(wait)
    request_to(client, Limited), request_to(client, Limited)
    order = [PlanRateThrottle, theirs] if first else [theirs, PlanRateThrottle]
    response = request_to(client, beside(*order))
    assert theirs.calls == 1
    assert response.headers["Retry-After"] == str(told)
    assert problem(response)["retry_after"] == told


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("wait", [None, 12.3])
def test_refused_by_another_throttle_alone(client: Client, first: bool, wait: Any) -> None:
    """Case 52: its own body and wait, and our numbers."""
    make_plan()
    theirs = throttle(wait)
    order = [PlanRateThrottle, theirs] if first else [theirs, PlanRateThrottle]
    response = request_to(client, beside(*order))
    assert response.status_code == 429
    assert response.headers["Content-Type"] == "application/json"
    assert list(response.json()) == ["detail"]
    assert response.headers.get("Retry-After") == (None if wait is None else "13")
    assert left(response) == {"api": 9}


def test_a_wait_that_helps_nobody_is_not_told(client: Client) -> None:
    """Another throttle's five seconds would not let this request pass."""
    make_plan("api 0/d")
    response = request_to(client, beside(PlanRateThrottle, throttle(5)))
    assert "Retry-After" not in response.headers
    assert problem(response)["retryable"] is False


def test_another_throttle_that_agrees(client: Client) -> None:
    make_plan("api 1/d")
    theirs = throttle(None, allowed=True)
    view = beside(theirs, PlanRateThrottle)
    assert request_to(client, view).status_code == 200
    assert problem(request_to(client, view))
    assert theirs.calls == 2


def test_view_with_its_own_finalize_response(client: Client) -> None:
    class Enveloped(Limited):
        def finalize_response(self, request: Any, response: Any, *args: Any, **kw: Any) -> Any:
            response = super().finalize_response(request, response, *args, **kw)
            response["X-Own"] = "1"
            response.data = {"data": response.data, "status": response.status_code}
            return response

    make_plan("api 1/d")
    allowed, denied = request_to(client, Enveloped), request_to(client, Enveloped)
    assert allowed.json() == {"data": {"fine": True}, "status": 200}
    assert denied.json()["data"]["detail"] == "Limit is 1 request per day for this address."
    for response in (allowed, denied):
        assert response.headers["X-Own"] == "1"
        assert left(response) == {"api": 0}
    assert denied.headers["Retry-After"] == "86400"


def test_exception_knows_the_decision(client: Client) -> None:
    seen: list[Any] = []

    def keep(error: Any, context: Any) -> Any:
        seen.append(error)
        return exception_handler(error, context)

    refused(client, type("View", (Limited,), {"handler": staticmethod(keep)}))
    assert isinstance(seen[0], PlanThrottled)
    assert [outcome.name for outcome in seen[0].decision.violated] == ["api"]


def test_accept_that_no_view_could_meet_is_not_our_refusal(client: Client) -> None:
    """DRF negotiates first, and counts nothing for it."""
    make_plan("api 1/d")
    assert request_to(client, Limited, "image/png").status_code == 406
    assert request_to(client, Limited).status_code == 200


def test_own_type_of_problem(client: Client, settings: Any) -> None:
    settings.RATELIMITS = {"PROBLEM_TYPES": {"quota-exceeded": "https://api.example/quota"}}
    response = refused(client, Limited)
    assert json.loads(response.content)["type"] == "https://api.example/quota"
    assert response.headers["Content-Type"] == PROBLEM
