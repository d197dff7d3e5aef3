from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.http import Http404, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.test import Client
from django.urls import include, path
from rest_framework import viewsets
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.decorators import action, api_view, throttle_classes
from rest_framework.exceptions import AuthenticationFailed, ValidationError
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from ratelimits.decorators import exempt
from ratelimits.throttling import PlanRateThrottle
from tests.doors import (
    PREFLIGHT,
    for_everyone,
    is_silent,
    left,
    make_plan,
    own_limit,
    per_address,
    problem,
    statuses,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls(__name__),
    pytest.mark.usefixtures("still"),
]


def chunks() -> Iterator[bytes]:
    yield b"a"
    yield b"b"


def raising(error: Exception) -> Any:
    raise error


ANSWERS: dict[str, Any] = {
    "200": lambda: Response({}),
    "201": lambda: Response({}, status=201),
    "204": lambda: Response(status=204),
    "302": lambda: HttpResponseRedirect("/next"),
    "400": lambda: raising(ValidationError("no")),
    "403": lambda: raising(PermissionDenied()),
    "404": lambda: raising(Http404()),
    "418": lambda: HttpResponse(status=418),
    "500": lambda: raising(ValueError()),
    "503": lambda: Response({}, status=503, headers={"Retry-After": "120"}),
    "stream": lambda: StreamingHttpResponse(chunks()),
}


class ByHeader(BaseAuthentication):
    """A user by name; a wrong one is told so."""

    def authenticate(self, request: Request) -> Any:
        name = request.headers.get("X-User")
        if name == "wrong":
            raise AuthenticationFailed()
        return name and (User.objects.get(username=name), None)

    def authenticate_header(self, request: Request) -> str:
        return "Own"


class Answering(APIView):
    throttle_classes = [PlanRateThrottle]
    authentication_classes: Any = [ByHeader]

    def get(self, request: Request, answer: str = "200") -> Any:
        return ANSWERS[answer]()

    def post(self, request: Request) -> Response:
        Group.objects.create(name="new")
        return Response({})


class Private(Answering):
    permission_classes = [IsAuthenticated]


class BySession(Answering):
    authentication_classes = [SessionAuthentication]


class Public(Answering):
    authentication_classes: Any = []


@exempt
class Exempt(Answering):
    pass


class ExemptHandler(Answering):
    @exempt
    def get(self, request: Request, answer: str = "200") -> Any:
        return super().get(request, answer)


class Things(viewsets.ViewSet):
    throttle_classes = [PlanRateThrottle]

    def list(self, request: Request) -> Response:
        return Response([])

    @exempt
    @action(detail=False)
    def health(self, request: Request) -> Response:
        return Response({})


@exempt
@api_view(["GET"])
@throttle_classes([PlanRateThrottle])
def exempt_above(request: Request) -> Response:
    return Response({})


@api_view(["GET"])
@exempt
@throttle_classes([PlanRateThrottle])
def exempt_below(request: Request) -> Response:
    return Response({})


router = SimpleRouter()
router.register("things", Things, basename="things")
urlpatterns = [
    path("answer/<answer>", Answering.as_view()),
    path("view", Answering.as_view()),
    path("private", Private.as_view()),
    path("session", BySession.as_view()),
    path("public", Public.as_view()),
    path("exempt", Exempt.as_view()),
    path("exempt-as-view", exempt(Answering.as_view())),
    path("exempt-handler", ExemptHandler.as_view()),
    path("exempt-above", exempt_above),
    path("exempt-below", exempt_below),
    path("", include(router.urls)),
]


@pytest.fixture
def quiet_client() -> Client:
    """Gives the answer to an error, as a server does."""
    return Client(raise_request_exception=False)


@pytest.mark.parametrize("answer", [name for name in ANSWERS if name != "500"])
def test_fields_on_every_status(client: Client, answer: str) -> None:
    """Case 50."""
    make_plan()
    response: Any = client.get(f"/answer/{answer}")
    assert str(response.status_code) == ("200" if answer == "stream" else answer)
    assert left(response) == {"api": 9}
    assert response.headers["RateLimit-Policy"] == '"api";q=10;w=86400'
    if answer == "stream":
        assert b"".join(response.streaming_content) == b"ab"
    assert response.headers.get("Retry-After") == ("120" if answer == "503" else None)


def test_never_below_nothing(client: Client) -> None:
    """Case 50: twenty tries later."""
    make_plan("api 1/d")
    answers = [client.get("/view") for _ in range(21)]
    assert [answer.status_code for answer in answers] == [200] + [429] * 20
    assert {left(answer)["api"] for answer in answers} == {0}
    assert len({answer.headers.get("Retry-After") for answer in answers[1:]}) == 1


@pytest.mark.parametrize("with_middleware", [True, False])
def test_an_error_of_the_view_needs_the_middleware(
    quiet_client: Client, settings: Any, with_middleware: bool
) -> None:
    """Case 50: DRF lets it go, and with it the view's last word."""
    settings.MIDDLEWARE = ["ratelimits.middleware.RateLimitMiddleware"] if with_middleware else []
    make_plan()
    response = quiet_client.get("/answer/500")
    assert response.status_code == 500
    assert is_silent(response) is not with_middleware
    assert left(quiet_client.get("/view")) == {"api": 8}


def test_redirect_with_nothing_left_says_nothing_that_stops_a_client(client: Client) -> None:
    make_plan("api 1/d")
    response = client.get("/answer/302")
    assert response.status_code == 302
    assert "RateLimit" not in response.headers
    assert "RateLimit-Policy" in response.headers


def test_callers_who_are_turned_away_are_not_counted(client: Client) -> None:
    """Case 59: DRF authenticates first, so that a throttle can't limit guesses."""
    make_plan("api 1/d")
    User.objects.create(username="ann")
    for _ in range(3):
        assert client.get("/private", headers={"X-User": "wrong"}).status_code == 401
        assert client.get("/private").status_code == 401
    assert client.get("/private", headers={"X-User": "ann"}).status_code == 200


def test_each_user_has_a_bucket(client: Client) -> None:
    make_plan("api 1/d")
    for name in ("ann", "bob"):
        User.objects.create(username=name)
        headers = {"X-User": name}
        assert [client.get("/view", headers=headers).status_code for _ in range(2)] == [200, 429]
    assert statuses(lambda: client.get("/view"), 2) == [200, 429]


def test_detail_names_the_key_of_a_tenant(client: Client) -> None:
    make_plan("api 0/d")
    User.objects.create(username="ann")
    body = problem(client.get("/view", headers={"X-User": "ann"}))
    assert body["detail"] == "No such requests are allowed for this key."


@pytest.mark.parametrize("with_middleware", [True, False])
def test_without_users_callers_count_by_address(
    client: Client, settings: Any, with_middleware: bool
) -> None:
    """Case 10: UNAUTHENTICATED_USER is None, and nothing sets request.user."""
    settings.REST_FRAMEWORK = {"UNAUTHENTICATED_USER": None, "UNAUTHENTICATED_TOKEN": None}
    settings.MIDDLEWARE = ["ratelimits.middleware.RateLimitMiddleware"] if with_middleware else []
    make_plan("api 1/d")
    assert statuses(lambda: client.get("/public", REMOTE_ADDR="192.0.2.1"), 2) == [200, 429]
    assert statuses(lambda: client.get("/public", REMOTE_ADDR="192.0.2.2"), 2) == [200, 429]


def test_head_counts_as_get(client: Client) -> None:
    """Case 62."""
    make_plan()
    assert left(client.get("/view")) == {"api": 9}
    response = client.head("/view")
    assert response.status_code == 200
    assert left(response) == {"api": 8}


def test_options_count(client: Client) -> None:
    make_plan("api 1/d")
    assert statuses(lambda: client.options("/view"), 2) == [200, 429]


def test_preflights_are_charged_to_no_tenant(client: Any) -> None:
    """Rule 16: a limit per address still applies."""
    make_plan("api 1/d")
    per_address("3/d")
    preflights = [client.options("/view", **PREFLIGHT) for _ in range(2)]
    assert [left(answer) for answer in preflights] == [{"address": 2}, {"address": 1}]
    assert client.get("/view").status_code == 200
    assert statuses(lambda: client.options("/view", **PREFLIGHT), 1) == [429]


@pytest.mark.parametrize("field", list(PREFLIGHT))
def test_half_a_preflight_is_none(client: Any, field: str) -> None:
    make_plan("api 1/d")
    fields = {field: PREFLIGHT[field]}
    assert statuses(lambda: client.options("/view", **fields), 2) == [200, 429]


@pytest.mark.parametrize(
    "url",
    [
        "/exempt",
        "/exempt-as-view",
        "/exempt-handler",
        "/exempt-above",
        "/exempt-below",
        "/things/health/",
    ],
)
def test_exempt_views(client: Client, url: str) -> None:
    """Nothing is taken and nothing published."""
    make_plan("api 1/d")
    for _ in range(3):
        response = client.get(url)
        assert response.status_code == 200
        assert is_silent(response)
    assert client.get("/view").status_code == 200


@pytest.mark.parametrize(
    "view",
    [Exempt.as_view(), ExemptHandler.as_view(), exempt_below],
    ids=["class", "handler", "function"],
)
def test_exempt_views_that_are_called_without_urls(view: Any) -> None:
    make_plan("api 0/d")
    assert view(APIRequestFactory().get("/")).status_code == 200


@pytest.mark.parametrize("call", ["post /exempt-handler", "get /things/"])
def test_only_the_marked_handler_is_exempt(client: Client, call: str) -> None:
    make_plan("api 1/d")
    method, url = call.split()
    assert statuses(lambda: getattr(client, method)(url), 2) == [200, 429]


def is_staff(request: Any) -> bool:
    return bool(request.user.is_staff)


async def is_staff_later(request: Any) -> bool:
    return bool(request.user.is_staff)


@pytest.mark.parametrize("rule", [is_staff, is_staff_later])
def test_exempt_callers(client: Client, settings: Any, rule: Any) -> None:
    """Case 22: an exempt caller with a limit of its own is limited by it."""
    settings.RATELIMITS = {"EXEMPT": rule}
    make_plan("api 1/d")
    for_everyone("1000/d")
    staff = User.objects.create(username="staff", is_staff=True)
    User.objects.create(username="other", is_staff=True)
    User.objects.create(username="guest")
    own_limit(f"user:{staff.pk}", "3/d")

    def by(name: str) -> Any:
        return client.get("/view", headers={"X-User": name})

    assert statuses(lambda: by("staff"), 4) == [200, 200, 200, 429]
    assert statuses(lambda: by("other"), 20) == [200] * 20
    assert is_silent(by("other"))
    assert statuses(lambda: by("guest"), 2) == [200, 429]


def test_public_view_touches_no_session(client: Client) -> None:
    """Case 67: no query for it, and a page that shared caches may keep."""
    make_plan()
    client.force_login(User.objects.create(username="ann"))
    client.get("/public")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "django.contrib.sessions.backends.db.SessionStore.load",
            lambda self: pytest.fail("the session was read"),
        )
        response = client.get("/public")
    assert left(response) == {"api": 8}
    assert "Cookie" not in response.headers.get("Vary", "")


@pytest.fixture
def atomic_requests() -> Iterator[None]:
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    yield
    connection.settings_dict["ATOMIC_REQUESTS"] = False


@pytest.mark.django_db(transaction=True)
def test_counts_stay_if_the_view_is_rolled_back(
    atomic_requests: None, quiet_client: Client
) -> None:
    """ATOMIC_REQUESTS: a refusal rolls back as DRF's own, and reads no broken transaction."""
    make_plan("api 2/d")
    assert quiet_client.get("/answer/500").status_code == 500
    assert quiet_client.post("/view").status_code == 200
    assert Group.objects.filter(name="new").count() == 1
    response = quiet_client.post("/view")
    assert problem(response)["violated-policies"] == ["api"]
    assert left(response) == {"api": 0}


@pytest.mark.django_db(transaction=True)
def test_refusals_mark_the_transaction(atomic_requests: None, client: Client) -> None:
    make_plan("api 0/d")
    with pytest.MonkeyPatch.context() as patch:
        marked: list[bool] = []
        patch.setattr(transaction, "set_rollback", lambda value, using=None: marked.append(value))
        patch.setattr(connection, "set_rollback", marked.append)
        assert client.get("/view").status_code == 429
    assert marked == [True]


def test_queries_of_a_warm_request(client: Client, django_assert_num_queries: Any) -> None:
    """Case 21: none."""
    make_plan()
    client.get("/public")
    with django_assert_num_queries(0):
        assert left(client.get("/public")) == {"api": 8}
