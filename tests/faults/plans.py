"""The demo's tenants, each with one limit: large or small, and with its own way to go on."""

from __future__ import annotations

from demo_project import data
from ratelimits.models import Plan, ServiceLimit, Tenant

SMALL = 100
LIMITS = {
    # Nobody can use it up: whatever refuses it is wrong.
    "acme": ("10000000/d", "local"),
    "bakery": (f"{SMALL}/366d", "local"),
    "clinic": (f"{SMALL}/366d", "allow"),
    "anonymous": (f"{SMALL}/366d", "deny"),
}


def create() -> None:
    data.create()
    ServiceLimit.objects.all().delete()
    for key, (rate, way) in LIMITS.items():
        plan = Plan.objects.create(slug=key, name=key)
        plan.limits.create(name="api", rate=rate, on_store_failure=way)
        Tenant.objects.get(key=key).limits.all().delete()
        Tenant.objects.filter(key=key).update(plan=plan)
