"""Plain Django views, with the decorators on them."""

from __future__ import annotations

import csv

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from ratelimits.decorators import exempt, ratelimit
from ratelimits.models import Plan, Tenant
from ratelimits.tenants import tenant_of

from .models import Order
from .tenants import KEYS


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    tenants = Tenant.objects.select_related("plan").order_by("pk")
    context = {
        "plans": Plan.objects.prefetch_related("limits").order_by("pk"),
        "tenants": [(tenant, KEYS.get(tenant.key)) for tenant in tenants],
        "key": KEYS["acme"],
        "root": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "demo/home.html", context)


@require_GET
@ratelimit(scope="export", cost=5)
def export(request: HttpRequest) -> HttpResponse:
    """A tenant's orders as CSV: a view of Django's own that costs five units of the plan."""
    response = HttpResponse(content_type="text/csv")
    rows = csv.writer(response)
    rows.writerow(["product", "quantity", "created_at"])
    for order in Order.objects.filter(tenant=tenant_of(request) or ""):
        rows.writerow([order.product, order.quantity, order.created_at.isoformat()])
    return response


@csrf_exempt
@require_POST
@ratelimit("5/m", by="ip", name="contact")
def contact(request: HttpRequest) -> JsonResponse:
    """A form that anybody may send, so that no plan counts: five times a minute from an address."""
    return JsonResponse({"thanks": True})


def version(request: HttpRequest) -> JsonResponse:
    """No limit of its own. It is below /api/, where the middleware takes from the plan."""
    return JsonResponse({"version": 1})


@exempt
def health(request: HttpRequest) -> HttpResponse:
    """For whoever watches the service: never limited."""
    return HttpResponse("ok\n", content_type="text/plain")
