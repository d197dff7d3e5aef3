from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.http import HttpRequest
from django.test import Client
from django.urls import include, path
from rest_framework import generics, serializers, viewsets
from rest_framework.decorators import action, api_view, throttle_classes, throttle_scope
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from ratelimits.decorators import throttle_cost
from ratelimits.throttling import PlanRateThrottle
from tests.doors import is_silent, left, make_plan, statuses

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls(__name__),
    pytest.mark.usefixtures("still"),
]


def items(request: Any, view: APIView) -> int:
    assert isinstance(view, APIView)
    return len(request.data["items"])


class Prices:
    def of(self, request: Request, view: APIView) -> int:
        return 4


class Limited(APIView):
    throttle_classes = [PlanRateThrottle]

    def get(self, request: Any) -> Response:
        return Response({"left": [each.remaining for each in request.ratelimit.outcomes]})

    def post(self, request: Any) -> Response:
        return Response({"items": request.data["items"]})


class Configurable(Limited):
    """DRF's as_view() and @action take only what the class has."""

    throttle_scope = None
    throttle_cost = None


class Scoped(Limited):
    throttle_scope = "search"


class Costly(Limited):
    throttle_cost = 5


class Counting(Limited):
    throttle_cost = items


class CountingByLambda(Limited):
    throttle_cost = lambda request, view: 3  # noqa: E731


class CountingByMethodOfAnother(Limited):
    throttle_cost = Prices().of


@throttle_cost(6)
class Decorated(Limited):
    pass


class CostingTwo(Limited):
    throttle_cost = 2


class PerHandler(CostingTwo):
    @throttle_cost(7)
    def get(self, request: Request) -> Response:
        return super().get(request)


class GroupSerializer(serializers.ModelSerializer[Group]):
    class Meta:
        model = Group
        fields = ["name"]


class Groups(generics.ListCreateAPIView[Group]):
    queryset = Group.objects.order_by("name")
    serializer_class = GroupSerializer
    throttle_classes = [PlanRateThrottle]


# In its body the viewset's attribute stands before the decorator.
costs = throttle_cost


class GroupSet(viewsets.ModelViewSet[Group]):
    queryset = Group.objects.order_by("name")
    serializer_class = GroupSerializer
    throttle_classes = [PlanRateThrottle]
    throttle_scope = None
    throttle_cost: Any = None

    @action(detail=False, throttle_scope="search", throttle_cost=6)
    def found(self, request: Request) -> Response:
        return Response({})

    @action(detail=False, methods=["get", "post"])
    @costs(4)
    def below(self, request: Request) -> Response:
        return Response({})

    @below.mapping.delete
    @costs(8)
    def removed(self, request: Request) -> Response:
        return Response({})

    @costs(lambda request, view: len(view.action))
    @action(detail=False)
    def above(self, request: Request) -> Response:
        return Response({})

    @action(detail=False, throttle_classes=[])
    def free(self, request: Request) -> Response:
        return Response({})

    @costs(3)
    def list(self, request: Request) -> Response:
        return Response([])


@api_view(["GET"])
@throttle_classes([PlanRateThrottle])
def function(request: Request) -> Response:
    return Response({})


@api_view(["GET", "POST"])
@throttle_classes([PlanRateThrottle])
@throttle_scope("search")
@throttle_cost(lambda request, view: len(request.data.get("items", "1")))
def function_with_all(request: Request) -> Response:
    return Response({})


@api_view(["GET"])
@throttle_cost(3)
@throttle_classes([PlanRateThrottle])
def function_below(request: Request) -> Response:
    return Response({})


@throttle_cost(3)
@api_view(["GET"])
@throttle_classes([PlanRateThrottle])
def function_above(request: Request) -> Response:
    return Response({})


class BySetting(PlanRateThrottle):
    """What a project may change in a class of its own."""

    def get_scope(self, request: Request, view: APIView) -> str:
        return "search" if "q" in request.query_params else super().get_scope(request, view)

    def get_cost(self, request: Request, view: APIView) -> int:
        return 2 * super().get_cost(request, view)


class Searching(PlanRateThrottle):
    def get_scope(self, request: Request, view: APIView) -> str:
        return "search"


class Exporting(PlanRateThrottle):
    def get_scope(self, request: Request, view: APIView) -> str:
        return "export"


class Subclassed(Limited):
    throttle_classes = [BySetting]


class Twice(Scoped):
    throttle_classes = [PlanRateThrottle, BySetting]


router = SimpleRouter()
router.register("groups", GroupSet)
urlpatterns = [
    path("limited", Limited.as_view()),
    path("scoped", Scoped.as_view()),
    path("costly", Costly.as_view()),
    path("given", Configurable.as_view(throttle_scope="search", throttle_cost=2)),
    path("counting", Counting.as_view()),
    path("lambda", CountingByLambda.as_view()),
    path("another", CountingByMethodOfAnother.as_view()),
    path("decorated", Decorated.as_view()),
    path("handler", PerHandler.as_view()),
    path("generic", Groups.as_view()),
    path("function", function),
    path("all", function_with_all),
    path("below", function_below),
    path("above", function_above),
    path("subclassed", Subclassed.as_view()),
    path("twice", Twice.as_view()),
    path("", include(router.urls)),
]


@pytest.mark.parametrize("url", ["/limited", "/generic", "/function", "/groups/1/"])
def test_every_kind_of_view_is_limited(client: Client, url: str) -> None:
    make_plan("api 2/d")
    first, second, third = (client.get(url) for _ in range(3))
    assert {first.status_code, second.status_code} <= {200, 404}
    assert third.status_code == 429
    assert [left(response) for response in (first, second, third)] == [
        {"api": 1},
        {"api": 0},
        {"api": 0},
    ]


def test_all_views_of_a_plan_share_its_limits(client: Client) -> None:
    make_plan()
    assert [left(client.get(url))["api"] for url in ("/limited", "/generic", "/function")] == [
        9,
        8,
        7,
    ]


@pytest.mark.parametrize(
    ("url", "cost"),
    [
        ("/costly", 5),
        ("/lambda", 3),
        ("/another", 4),
        ("/decorated", 6),
        ("/handler", 7),
        ("/groups/", 3),
        ("/groups/below/", 4),
        ("/groups/above/", len("above")),
        ("/below", 3),
        ("/above", 3),
        ("/all", 1),
        ("/subclassed", 2),
    ],
)
def test_cost(client: Client, url: str, cost: int) -> None:
    make_plan()
    assert left(client.get(url)) == {"api": 10 - cost}


def test_cost_of_another_handler_is_the_views(client: Client) -> None:
    make_plan()
    response = client.post("/handler", {"items": [1]}, "application/json")
    assert left(response) == {"api": 8}


def test_each_method_of_an_action_has_its_own_cost(client: Client) -> None:
    make_plan("api 100/d")
    assert left(client.post("/groups/below/")) == {"api": 96}
    assert left(client.delete("/groups/below/")) == {"api": 88}


@pytest.mark.parametrize("url", ["/counting", "/all"])
def test_cost_by_what_was_posted(client: Client, url: str) -> None:
    """Case 35: six, five and four items of ten."""
    make_plan()
    answers = [client.post(url, {"items": [0] * count}, "application/json") for count in (6, 5, 4)]
    assert [answer.status_code for answer in answers] == [200, 429, 200]
    assert [left(answer)["api"] for answer in answers] == [4, 4, 0]
    assert answers[1].json()["cost"] == 5
    assert answers[1].headers["Retry-After"] == "8640"


@pytest.mark.parametrize(
    ("url", "limits"),
    [
        ("/limited", {"api": 99}),
        ("/scoped", {"api": 99, "search": 9}),
        ("/given", {"api": 98, "search": 8}),
        ("/all", {"api": 99, "search": 9}),
        ("/groups/found/", {"api": 94, "search": 4}),
        ("/subclassed", {"api": 98}),
        ("/subclassed?q=1", {"api": 98, "search": 8}),
    ],
)
def test_scope_adds_its_limits(client: Client, url: str, limits: dict[str, int]) -> None:
    make_plan("api 100/d", "search 10/d search", "export 1/d export")
    assert left(client.get(url)) == limits


def test_a_scope_that_no_limit_has_is_no_limit(client: Client) -> None:
    make_plan("search 10/d search")
    assert "RateLimit" not in client.get("/limited").headers
    assert left(client.get("/scoped")) == {"search": 9}


def test_two_classes_of_ours_count_once_at_the_highest_cost(client: Client) -> None:
    """Rule 10: one and two units of the same limit are two."""
    make_plan("api 100/d")
    assert left(client.get("/twice")) == {"api": 98}


def test_two_classes_of_ours_refuse_together(client: Client) -> None:
    make_plan("api 1/d")
    response = client.get("/twice")
    assert response.status_code == 429
    assert response.json()["retryable"] is False
    assert left(response) == {"api": 1}


@pytest.mark.parametrize("order", [[Searching, Exporting], [Exporting, Searching]])
def test_two_refusals_of_ours_are_one(order: list[Any]) -> None:
    """With both limits in the body, and the longer wait."""
    make_plan("search 1/h search", "export 1/d export")
    kind: Any = type("View", (Limited,), {"throttle_classes": order})
    view = kind.as_view()
    first, second = (view(APIRequestFactory().get("/")) for _ in range(2))
    assert first.status_code == 200
    body = json.loads(second.render().content)
    assert sorted(body["violated-policies"]) == ["export", "search"]
    assert body["retry_after"] == 86400
    assert left(second) == {"search": 0, "export": 0}


def test_one_refusal_of_two_is_one() -> None:
    make_plan("search 0/h search", "export 9/d export")
    kind: Any = type("View", (Limited,), {"throttle_classes": [Searching, Exporting]})
    body = json.loads(kind.as_view()(APIRequestFactory().get("/")).render().content)
    assert body["violated-policies"] == ["search"]


def test_an_action_without_throttles_is_not_limited(client: Client) -> None:
    make_plan("api 1/d")
    assert statuses(lambda: client.get("/groups/free/"), 3) == [200] * 3


def test_the_decision_is_on_the_request(client: Client) -> None:
    make_plan()
    assert client.get("/limited").json() == {"left": [9]}


@pytest.mark.parametrize("cost", [-1, 1.5, "3", True, None])
def test_cost_that_can_not_be_is_refused_at_once(cost: Any) -> None:
    with pytest.raises(ValueError, match="whole number"):
        throttle_cost(cost)


def test_cost_that_can_not_be_is_an_error_at_the_request(client: Client) -> None:
    make_plan()
    view = Configurable.as_view(throttle_cost=lambda request, view: -5)
    with pytest.raises(ValueError, match="whole number"):
        view(APIRequestFactory().get("/"))
    assert left(client.get("/limited")) == {"api": 9}


def test_cost_of_none_is_one(client: Client) -> None:
    make_plan()
    response = Configurable.as_view(throttle_cost=None)(APIRequestFactory().get("/"))
    assert left(response) == {"api": 9}


def test_cost_of_zero_takes_nothing_and_publishes(client: Client) -> None:
    make_plan()
    view = Configurable.as_view(throttle_cost=0)
    for _ in range(3):
        assert left(view(APIRequestFactory().get("/"))) == {"api": 10}


def test_without_a_plan_nothing_is_limited(client: Client) -> None:
    assert "RateLimit" not in client.post("/limited", {"items": 1}, "application/json").headers


def test_a_view_that_is_called_without_urls() -> None:
    """As by a test of the project's own."""
    make_plan("api 1/d")
    request: HttpRequest = APIRequestFactory().get("/")
    assert statuses(lambda: function(request), 1) == [200]
    assert statuses(lambda: function(APIRequestFactory().get("/")), 1) == [429]


@pytest.mark.parametrize("mode", ["enforce", "off"])
def test_the_decision_is_there_if_no_limit_is(client: Client, settings: Any, mode: str) -> None:
    """Or else an operator's edit would break the view."""
    settings.RATELIMITS = {"MODE": mode}
    response = client.get("/limited")
    assert response.json() == {"left": []}
    assert is_silent(response)
