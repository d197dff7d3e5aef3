"""The API: search and orders. What limits it is the throttle class in REST_FRAMEWORK."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits.decorators import throttle_cost
from ratelimits.tenants import tenant_of

from .models import Order

PRODUCTS = (
    "apple juice", "black tea", "brown bread", "cocoa", "coffee beans", "green tea",
    "oat milk", "orange juice", "rice", "rye bread", "sugar", "white bread",
)  # fmt: skip
MOST_QUERIES = 20


def find(text: str) -> list[str]:
    return [product for product in PRODUCTS if text.strip().lower() in product]


class Queries(serializers.Serializer[Any]):
    queries = serializers.ListField(
        child=serializers.CharField(max_length=100), max_length=MOST_QUERIES
    )


class Found(serializers.Serializer[Any]):
    query = serializers.CharField()
    found = serializers.ListField(child=serializers.CharField())


class SearchView(APIView):
    """`GET ?q=tea` searches once. `POST {"queries": [...]}` searches for many, and costs 5."""

    throttle_scope = "search"
    # A form has no way to say an empty list.
    parser_classes = [JSONParser]

    @extend_schema(parameters=[OpenApiParameter("q", str)], responses={200: Found})
    def get(self, request: Request) -> Response:
        text = request.query_params.get("q", "")
        return Response({"query": text, "found": find(text)})

    @extend_schema(request=Queries, responses={200: OpenApiTypes.OBJECT, 400: OpenApiTypes.OBJECT})
    @throttle_cost(5)
    def post(self, request: Request) -> Response:
        asked = Queries(data=request.data)
        asked.is_valid(raise_exception=True)
        return Response({text: find(text) for text in asked.validated_data["queries"]})


class OrderSerializer(serializers.ModelSerializer[Order]):
    product = serializers.ChoiceField(choices=PRODUCTS)

    class Meta:
        model = Order
        fields = ["id", "product", "quantity", "created_at"]


class OrdersView(generics.ListCreateAPIView[Order]):
    """A tenant's own orders. `POST {"product": "green tea", "quantity": 2}` adds one."""

    serializer_class = OrderSerializer

    def get_queryset(self) -> QuerySet[Order]:
        return Order.objects.filter(tenant=tenant_of(self.request) or "")[:100]

    @extend_schema(responses={201: OrderSerializer, 400: OpenApiTypes.OBJECT})
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().post(request, *args, **kwargs)

    def perform_create(self, serializer: serializers.BaseSerializer[Order]) -> None:
        serializer.save(tenant=tenant_of(self.request) or "")
