"""What the tests of the three doors share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import http_sf
from django.http import HttpRequest
from django.test import RequestFactory

from ratelimits.models import Plan, PlanLimit, ServiceLimit, Tenant, TenantLimit

PROBLEM = "application/problem+json"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
PREFLIGHT = {
    "HTTP_ORIGIN": "https://shop.example",
    "HTTP_ACCESS_CONTROL_REQUEST_METHOD": "POST",
}


def make_plan(*limits: str, slug: str = "free", **named: str) -> Plan:
    """The default plan; a limit is written as `name rate` or `name rate scope`."""
    plan = Plan.objects.create(slug=slug, name=slug, is_default=True)
    for limit in limits or ("api 10/d",):
        name, rate, *scope = limit.split()
        PlanLimit.objects.create(plan=plan, name=name, rate=rate, scope="".join(scope))
    return plan


def per_address(rate: str, name: str = "address", **options: Any) -> ServiceLimit:
    return ServiceLimit.objects.create(name=name, rate=rate, per="address", **options)


def for_everyone(rate: str, **options: Any) -> ServiceLimit:
    return ServiceLimit.objects.create(name="everyone", rate=rate, per="everyone", **options)


def own_limit(key: str, rate: str, name: str = "api") -> TenantLimit:
    tenant, _ = Tenant.objects.get_or_create(key=key)
    return TenantLimit.objects.create(tenant=tenant, name=name, rate=rate)


def left(response: Any) -> dict[str, int]:
    """What `RateLimit` says is left of each limit."""
    return {name: parameters["r"] for name, parameters in _parsed(response, "RateLimit")}


def policies(response: Any) -> list[str]:
    return [name for name, _ in _parsed(response, "RateLimit-Policy")]


def _parsed(response: Any, field: str) -> Any:
    return http_sf.parse(response.headers[field].encode("ascii"), tltype="list")


def is_silent(response: Any) -> bool:
    """Whether nothing is published."""
    return not any("ratelimit" in name.lower() for name in response.headers)


def statuses(call: Callable[[], Any], times: int) -> list[int]:
    return [call().status_code for _ in range(times)]


def problem(response: Any) -> dict[str, Any]:
    """The body of a refusal, which is seen to be one."""
    assert response.headers["Content-Type"] == PROBLEM
    assert response.headers["Cache-Control"] == "no-store"
    body: dict[str, Any] = json.loads(response.content)
    assert body["status"] == response.status_code
    return body


def request(method: str = "get", url: str = "/", **options: Any) -> HttpRequest:
    made: HttpRequest = getattr(RequestFactory(), method)(url, **options)
    return made
