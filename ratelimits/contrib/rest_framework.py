"""For Django REST framework: the view for callers, behind its authentication."""

from __future__ import annotations

from typing import Any

from ratelimits.extras import lacking

try:
    from rest_framework import serializers
    from rest_framework.request import Request
    from rest_framework.response import Response
    from rest_framework.views import APIView
except ModuleNotFoundError as error:
    raise lacking(error, "drf") from error

from ratelimits.budgets import budget_of
from ratelimits.decorators import exempt


class LimitSerializer(serializers.Serializer[Any]):
    """One limit, as budget_of() tells it."""

    name = serializers.CharField()
    scope = serializers.CharField(allow_blank=True)
    limit = serializers.IntegerField(min_value=0)
    window = serializers.IntegerField(min_value=1, allow_null=True)
    burst = serializers.IntegerField(min_value=0)
    remaining = serializers.IntegerField(min_value=0, allow_null=True)
    reset = serializers.IntegerField(min_value=0, allow_null=True)
    policy = serializers.CharField()
    description = serializers.CharField()

    class Meta:
        # In schemas, where projects have serializers of their own by such names.
        ref_name = "RateLimitOfCaller"


class RateLimitSerializer(serializers.Serializer[Any]):
    """What the view answers, for those who describe APIs by serializers."""

    available = serializers.BooleanField()
    limits = LimitSerializer(many=True)

    class Meta:
        ref_name = "RateLimitsOfCaller"


@exempt
class RateLimitView(APIView):
    """All limits of the caller, and how full they are. To ask costs nothing."""

    throttle_classes = ()
    serializer_class = RateLimitSerializer

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(budget_of(request), headers={"Cache-Control": "private, no-store"})
