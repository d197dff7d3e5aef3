from django.contrib.auth.models import User
from rest_framework import serializers, viewsets
from rest_framework.decorators import action, api_view, throttle_classes
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from shop.throttles import (
    BurstRateThrottle,
    LoginThrottle,
    ReportThrottle,
    StaffExemptThrottle,
    SustainedRateThrottle,
)


class UserSerializer(serializers.ModelSerializer):
    class Meta:
        model = User
        fields = ["username"]


class UserViewSet(viewsets.ReadOnlyModelViewSet):
    queryset = User.objects.order_by("pk")
    serializer_class = UserSerializer

    @action(detail=False, throttle_classes=[BurstRateThrottle, SustainedRateThrottle])
    def recent(self, request):
        return Response([])

    @action(detail=False, throttle_classes=[StaffExemptThrottle])
    def staff(self, request):
        return Response([])


class ReportView(APIView):
    throttle_classes = [ReportThrottle]
    throttle_scope = "reports"
    permission_classes = [IsAuthenticated]

    def get(self, request):
        return Response({"left": self.left})


class OpenView(APIView):
    throttle_classes = []

    def get(self, request):
        return Response({})


@api_view(["POST"])
@throttle_classes([LoginThrottle])
def login(request):
    return Response({"ok": True})


@api_view(["GET"])
def ping(request):
    return Response({})
