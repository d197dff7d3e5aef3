"""Edits by every way that Django has, and takes: done in this process or in another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from ratelimits import limiter
from ratelimits.decorators import ratelimit
from ratelimits.models import (
    ModeSwitch,
    Plan,
    PlanLimit,
    ScopeCost,
    ServiceLimit,
    Tenant,
    TenantLimit,
)
from tests.fresh import forget_everything


def quotas(key: str, cost: int = 0) -> dict[str, int]:
    """The limits that a take met, by name."""
    decision = limiter.take(key, cost=cost)
    return {outcome.name: outcome.limit.quota for outcome in decision.outcomes}


def cost_of_search(key: str) -> int:
    """What a take met that the code says costs 2."""
    return limiter.peek(key, scope="search", cost=2).cost


def allowed(key: str, cost: int) -> bool:
    return limiter.take(key, cost=cost).allowed


@ratelimit("0/h", by="ip", name="closed")
def closed(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def allowed_in_code() -> bool:
    """Whether a request passes a limit in code that refuses everyone."""
    response: HttpResponse = closed(RequestFactory().get("/"))
    return response.status_code == 200


def switch(mode: str, seconds: int) -> None:
    ModeSwitch.objects.switch(mode, seconds)


def save_a_limit() -> None:
    limit = PlanLimit.objects.get(plan__slug="pro")
    limit.rate = "15/h"
    limit.save()


def update_limits() -> None:
    PlanLimit.objects.filter(plan__slug="pro").update(rate="15/h")


def update_limits_of_a_plan() -> None:
    Plan.objects.get(slug="pro").limits.update(rate="15/h")


def bulk_update_limits() -> None:
    limits = list(PlanLimit.objects.filter(plan__slug="pro"))
    for limit in limits:
        limit.rate = "15/h"
    PlanLimit.objects.bulk_update(limits, ["rate"])


def bulk_create_limits() -> None:
    plan = Plan.objects.get(slug="pro")
    PlanLimit.objects.bulk_create([PlanLimit(plan=plan, name="more", rate="7/m")])


def delete_a_limit() -> None:
    PlanLimit.objects.get(plan__slug="pro").delete()


def delete_limits() -> None:
    PlanLimit.objects.filter(plan__slug="pro").delete()


def save_a_tenant() -> None:
    tenant = Tenant.objects.get(key="acme")
    tenant.plan = Plan.objects.get(slug="free")
    tenant.save()


def update_tenants() -> None:
    Tenant.objects.all().update(plan=Plan.objects.get(slug="free"))


def delete_a_tenant() -> None:
    Tenant.objects.get(key="acme").delete()


def delete_tenants() -> None:
    Tenant.objects.all().delete()


def rename_a_tenant() -> None:
    tenant = Tenant.objects.get(key="acme")
    tenant.key = "new"
    tenant.save()


def rename_tenants() -> None:
    Tenant.objects.filter(key="acme").update(key="new")


def save_an_own_limit() -> None:
    Tenant.objects.get(key="acme").limits.create(name="n", rate="99/h")


def bulk_create_own_limits() -> None:
    tenant = Tenant.objects.get(key="acme")
    TenantLimit.objects.bulk_create([TenantLimit(tenant=tenant, name="own", rate="99/h")])


def create_a_service_limit() -> None:
    ServiceLimit.objects.create(name="service", rate="1000/s")


def close_to_addresses() -> None:
    ServiceLimit.objects.create(name="closed", rate="0/s", per="address")


def save_a_cost() -> None:
    ScopeCost.objects.create(scope="search", cost=7)


def bulk_create_a_cost() -> None:
    ScopeCost.objects.bulk_create([ScopeCost(scope="search", cost=8)])


def update_costs() -> None:
    ScopeCost.objects.update(cost=9)


def move_a_cost() -> None:
    ScopeCost.objects.update(scope="export")


def delete_costs() -> None:
    ScopeCost.objects.all().delete()


def write_sql_and_refresh() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ratelimits_planlimit SET rate = '15/h' WHERE rate = '10/h'")
    call_command("ratelimits_refresh", verbosity=0)


# Each edit, and what applies to acme after it. Before, that is {"n": 10}.
EDITS: dict[Callable[[], None], dict[str, int]] = {
    save_a_limit: {"n": 15},
    update_limits: {"n": 15},
    update_limits_of_a_plan: {"n": 15},
    bulk_update_limits: {"n": 15},
    bulk_create_limits: {"n": 10, "more": 7},
    delete_a_limit: {},
    delete_limits: {},
    save_a_tenant: {"n": 5},
    update_tenants: {"n": 5},
    delete_a_tenant: {"n": 5},
    delete_tenants: {"n": 5},
    rename_a_tenant: {"n": 5},
    rename_tenants: {"n": 5},
    save_an_own_limit: {"n": 99},
    bulk_create_own_limits: {"n": 10, "own": 99},
    create_a_service_limit: {"n": 10, "service": 1000},
    write_sql_and_refresh: {"n": 15},
}
# Edits of costs, one after the other, and what a search costs after each.
COSTS: dict[Callable[[], None], int] = {
    save_a_cost: 7,
    update_costs: 9,
    move_a_cost: 2,
    delete_costs: 2,
    bulk_create_a_cost: 8,
}
ALL: dict[str, Callable[..., Any]] = {
    "forget": forget_everything,
    "quotas": quotas,
    "allowed": allowed,
    "allowed_in_code": allowed_in_code,
    "close_to_addresses": close_to_addresses,
    "cost_of_search": cost_of_search,
    **{edit.__name__: edit for edit in COSTS},
    "switch": switch,
    **{edit.__name__: edit for edit in EDITS},
}
