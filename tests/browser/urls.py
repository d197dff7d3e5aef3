"""A site with an admin, an API and a page, each limited."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.decorators import ratelimit
from ratelimits.throttling import PlanRateThrottle


class Orders(APIView):
    throttle_classes = (PlanRateThrottle,)

    def get(self, request: Request) -> Response:
        return Response({"orders": []})


@ratelimit("1/h", by="ip", name="page")
def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("<h1>Welcome</h1>")


def icon(request: HttpRequest) -> HttpResponse:
    """Browsers ask for it, and tell in their console that there is none."""
    return HttpResponse(status=204)


urlpatterns = [
    path("favicon.ico", icon),
    path("admin/", admin.site.urls),
    path("api/orders", Orders.as_view()),
    path("page", page),
]
