"""Views of DRF that are limited in every way there is, and some that are not."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group
from django.urls import include, path
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers, throttling, viewsets
from rest_framework.decorators import action, api_view, schema, throttle_classes
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView

from ratelimits.decorators import exempt, ratelimit, throttle_cost
from ratelimits.throttling import PlanRateThrottle, ScopedRateThrottle, UserRateThrottle


class Text(serializers.Serializer[Any]):
    text = serializers.CharField()


class Base(APIView):
    schema = AutoSchema()
    serializer_class = Text
    throttle_classes: Any = [PlanRateThrottle]

    def get(self, request: Request) -> Response:
        """Reads a text."""
        return Response({"text": ""})


class Search(Base):
    throttle_scope = "search"

    @throttle_cost(5)
    def post(self, request: Request) -> Response:
        return Response({"text": ""})

    @throttle_cost(lambda request, view: len(request.data))
    def put(self, request: Request) -> Response:
        return Response({"text": ""})


class WithARefusal(AutoSchema):
    def get_response_serializers(self) -> Any:
        return {200: Text, 429: Text}


class Own(Base):
    """Its 429 is documented by itself."""

    schema = WithARefusal()


class Open(Base):
    throttle_classes = ()


class Exempt(Base):
    @exempt
    def get(self, request: Request) -> Response:
        return Response({"text": ""})


class ByOthers(Base):
    throttle_classes = (throttling.UserRateThrottle,)


class ByRate(UserRateThrottle):
    rate = "10/m"


class Unlimited(UserRateThrottle):
    rate = None


class ByScope(ScopedRateThrottle):
    THROTTLE_RATES = {"uploads": "10/m", "free": None}


class Dropped(Base):
    throttle_classes = (ByRate,)


class DroppedUnlimited(Base):
    throttle_classes = (Unlimited,)


class DroppedScoped(Base):
    throttle_classes = (ByScope,)
    throttle_scope = "uploads"


class DroppedFree(Base):
    throttle_classes = (ByScope,)
    throttle_scope = "free"


class Decorated(Open):
    @ratelimit("5/m", scope="login", name="login", cost=2)
    @ratelimit(scope="search")
    @ratelimit("9/m", name="tried", mode="shadow")
    def post(self, request: Request) -> Response:
        return Response({"text": ""})

    @ratelimit("5/m", methods=["POST"], name="other")
    @ratelimit("unlimited", name="free")
    @ratelimit(None, name="none")
    def put(self, request: Request) -> Response:
        return Response({"text": ""})


class OfText(AutoSchema):
    def get_request_serializer(self) -> Any:
        return Text

    def get_response_serializers(self) -> Any:
        return Text


@api_view(["POST"])
@schema(OfText())
@throttle_classes([])
@ratelimit(scope="function", cost=lambda request: 3)
def function(request: Request) -> Response:
    return Response({"text": ""})


class GroupSerializer(serializers.ModelSerializer[Group]):
    class Meta:
        model = Group
        fields = ["name"]


class Groups(viewsets.ModelViewSet[Group]):
    schema = AutoSchema()
    queryset = Group.objects.all()
    serializer_class = GroupSerializer
    throttle_classes = [PlanRateThrottle]
    throttle_scope: str | None = None

    @throttle_cost(3)
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().list(request, *args, **kwargs)

    @action(detail=True, throttle_scope="export")
    def export(self, request: Request, pk: str) -> Response:
        return Response({})

    @action(detail=True, throttle_classes=[])
    def free(self, request: Request, pk: str) -> Response:
        return Response({})


router = SimpleRouter()
router.register("groups", Groups)
urlpatterns = [
    path("api/search", Search.as_view()),
    path("api/own", Own.as_view()),
    path("api/open", Open.as_view()),
    path("api/exempt", Exempt.as_view()),
    path("api/others", ByOthers.as_view()),
    path("api/dropped", Dropped.as_view()),
    path("api/dropped/unlimited", DroppedUnlimited.as_view()),
    path("api/dropped/scoped", DroppedScoped.as_view()),
    path("api/dropped/free", DroppedFree.as_view()),
    path("api/decorated", Decorated.as_view()),
    path("api/function", function),
    path("api/", include(router.urls)),
]
