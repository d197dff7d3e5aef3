"""Which scopes are in use, and which costs are set for others."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path
from django.utils.decorators import method_decorator
from django.views import View
from rest_framework import viewsets
from rest_framework.decorators import action, api_view, throttle_classes
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView

from ratelimits.decorators import ratelimit
from ratelimits.models import ScopeCost
from ratelimits.scopes import scopes_of_limits, scopes_of_views
from ratelimits.throttling import PlanRateThrottle
from tests.doors import for_everyone, make_plan, own_limit

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]
COSTS = "/admin/ratelimits/scopecost/"


class Search(APIView):
    throttle_scope = "class"


class Items(viewsets.ViewSet):
    throttle_scope: Any = None

    @action(detail=False, throttle_scope="action")
    def best(self, request: Request) -> Response:
        return Response({})

    @action(detail=False)
    @ratelimit(scope="below an action")
    def worst(self, request: Request) -> Response:
        return Response({})


@api_view()
@throttle_classes([PlanRateThrottle])
@ratelimit(scope="below api_view")
def below(request: Request) -> Response:
    return Response({})


@method_decorator(ratelimit(scope="dispatch"), name="dispatch")
class Page(View):
    @ratelimit(scope="method")
    def post(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()


@ratelimit(scope="decorated")
@ratelimit("5/m", by="ip", scope="in code", name="n")
def decorated(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


router = SimpleRouter()
router.register("items", Items, basename="item")
urlpatterns = [
    path("admin/", admin.site.urls),
    path("search", Search.as_view()),
    path("nested/", include([path("", include(router.urls))])),
    path("below", below),
    path("page", Page.as_view()),
    path("decorated", decorated),
    path("given", Search.as_view(throttle_scope="given")),
    path("unlimited", lambda request: HttpResponse()),
]


def test_scopes_of_views() -> None:
    assert scopes_of_views() == {
        "class",
        "action",
        "below an action",
        "below api_view",
        "dispatch",
        "method",
        "decorated",
        "in code",
        "given",
    }


def test_scopes_of_limits() -> None:
    make_plan("api 10/d", "a 10/d plan")
    own_limit("acme", "10/d").__class__.objects.update(scope="tenant")
    for_everyone("10/d", scope="service")
    assert scopes_of_limits() == {"plan", "tenant", "service"}


def texts(html: str) -> list[str]:
    cells = re.findall(r'class="field-used_by">(.*?)</td>', html)
    return [re.sub("<.*?>", "", cell) for cell in cells]


def test_the_list_marks_what_nobody_uses(admin_client: Client) -> None:
    make_plan("api 10/d", "a 10/d class", "b 10/d plan")
    for scope in ("class", "given", "plan", "typo"):
        ScopeCost.objects.create(scope=scope, cost=2)
    html = admin_client.get(COSTS).content.decode()
    assert texts(html) == [
        "views, limits",
        "views",
        "limits",
        "Nothing that can be seen. No limit and no view names this scope; code may still take it "
        "by name.",
    ]


def test_the_form(admin_client: Client) -> None:
    data = {"scope": "search", "cost": "5", "reason": "Costly."}
    assert admin_client.post(f"{COSTS}add/", data).status_code == 302
    row = ScopeCost.objects.get()
    page = admin_client.get(f"{COSTS}{row.pk}/change/").content.decode()
    assert "Costly." in page
    for wrong in ({"scope": ""}, {"cost": "-1"}, {"cost": ""}, {"scope": "a\nb"}):
        response = admin_client.post(f"{COSTS}{row.pk}/change/", {**data, **wrong})
        assert response.status_code == 200, wrong
    assert admin_client.post(f"{COSTS}add/", data).context["errors"]


def test_permissions(client: Client) -> None:
    user = User.objects.create_user("staff", is_staff=True)
    client.force_login(user)
    assert client.get(COSTS).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="view_scopecost"))
    assert client.get(COSTS).status_code == 200
    assert client.post(f"{COSTS}add/", {"scope": "a", "cost": "1"}).status_code == 403
