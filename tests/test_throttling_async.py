from __future__ import annotations

import asyncio
from typing import Any

import pytest
from adrf.decorators import api_view
from adrf.views import APIView
from adrf.viewsets import ViewSet
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client
from django.urls import path
from rest_framework.decorators import throttle_classes
from rest_framework.request import Request
from rest_framework.response import Response

from ratelimits.decorators import throttle_cost
from ratelimits.stores import get_store
from ratelimits.throttling import PlanRateThrottle
from tests.doors import left, make_plan, problem

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


class Limited(APIView):  # type: ignore[misc]
    throttle_classes = [PlanRateThrottle]

    async def get(self, request: Request) -> Response:
        return Response({})


class Things(ViewSet):  # type: ignore[misc]
    throttle_classes = [PlanRateThrottle]
    throttle_cost = 1

    async def list(self, request: Request) -> Response:
        return Response([])


@api_view(["GET"])  # type: ignore[type-var]
@throttle_classes([PlanRateThrottle])
@throttle_cost(1)
async def function(request: Request) -> Response:
    return Response({})


urlpatterns = [
    path("view", Limited.as_view()),
    path("things", Things.as_view({"get": "list"})),
    path("function", function),
]


@pytest.mark.parametrize("url", ["/view", "/things", "/function"])
@pytest.mark.parametrize("client", [Client(), AsyncClient()], ids=["wsgi", "asgi"])
async def test_async_views_of_drf(url: str, client: Any) -> None:
    """With adrf, which runs plain throttles in a thread."""
    await sync_to_async(make_plan)("api 1/d")
    get = client.get if isinstance(client, AsyncClient) else sync_to_async(client.get)
    allowed, denied = await get(url), await get(url)
    assert allowed.status_code == 200
    assert left(allowed) == {"api": 0}
    assert problem(denied)["violated-policies"] == ["api"]


async def test_the_store_is_not_asked_on_the_loop(
    async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 65."""
    store, asked = get_store(), []
    assert store is not None
    run = store.run

    def running(*args: Any) -> Any:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        asked.append(args)
        return run(*args)

    await sync_to_async(make_plan)("api 1/d")
    monkeypatch.setattr(store, "run", running)
    assert (await async_client.get("/view")).status_code == 200
    assert asked
