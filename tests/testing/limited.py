"""Views that limits of plans, or of a throttle class, apply to."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.throttling import PlanRateThrottle, UserRateThrottle


class View(APIView):
    throttle_classes: list[Any] = [PlanRateThrottle]

    def get(self, request: Any) -> Response:
        return Response({})


class Hourly(UserRateThrottle):
    rate = "100/hour"


class DropIn(View):
    throttle_classes = [Hourly]
