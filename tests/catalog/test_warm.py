"""A warm take asks no database, and an edit costs only those whom it concerns."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ratelimits import edits, rows
from ratelimits.catalog import Caller
from ratelimits.limiter import take
from ratelimits.models import Plan, PlanLimit, ScopeCost, Tenant
from ratelimits.stores.memory import MemoryStore
from tests.servers import RedisServer

from .edits import quotas
from .other import Other

pytestmark = pytest.mark.django_db(transaction=True)


def queries() -> CaptureQueriesContext:
    return CaptureQueriesContext(connection)


def tables(seen: CaptureQueriesContext) -> list[str]:
    """What the queries were about, from their FROM."""
    return [query["sql"].split('FROM "')[1].split('"')[0] for query in seen.captured_queries]


@pytest.mark.usefixtures("on_redis", "acme")
def test_a_warm_take_makes_no_query() -> None:
    ScopeCost.objects.create(scope="search", cost=2)
    take("acme")
    take("bakery")
    with queries() as seen:
        for _ in range(10):
            take("acme")
            take("bakery", scope="search")
    assert len(seen) == 0


@pytest.mark.usefixtures("fresh", "acme")
def test_a_warm_take_makes_no_query_in_memory() -> None:
    take("acme")
    with queries() as seen:
        take("acme")
    assert len(seen) == 0


def warm_up(monkeypatch: pytest.MonkeyPatch, count: int) -> list[str]:
    """Tenants that are known to have no rows. To read each of them in earnest takes long."""
    keys = [f"tenant-{number}" for number in range(count)]
    with monkeypatch.context() as patch:
        patch.setattr(rows, "load_tenant", lambda key: rows.Own())
        for key in keys:
            edits.shared.load(Caller(key), "")
    return keys


def test_twenty_thousand_warm_tenants(
    acme: Tenant, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit of one, elsewhere, makes only that one reload; one of a plan, only the plans."""
    keys = warm_up(monkeypatch, 20_000)
    assert quotas("acme") == {"n": 10}
    other.ask("save_a_tenant")
    with queries() as seen:
        assert {tuple(quotas(key).items()) for key in [*keys, "acme"]} == {(("n", 5),)}
    assert tables(seen) == ["ratelimits_tenant", "ratelimits_tenantlimit"]
    other.ask("create_a_service_limit")
    with queries() as seen:
        for key in ["acme", *keys[::10]]:
            assert quotas(key) == {"n": 5, "service": 1000}
    assert tables(seen) == [
        "ratelimits_plan",
        "ratelimits_planlimit",
        "ratelimits_servicelimit",
        "ratelimits_scopecost",
        "ratelimits_modeswitch",
    ]


@pytest.mark.usefixtures("on_redis", "acme")
def test_a_new_tenant_is_read_once() -> None:
    take("acme")
    with queries() as seen:
        take("somebody")
        take("somebody")
    assert tables(seen) == ["ratelimits_tenant"]


def test_edits_of_a_plan_do_not_bring_back_old_tenants(acme: Tenant, on_redis: RedisServer) -> None:
    """After all tenants may have been edited, an edit of the plans hides none of that."""
    assert quotas("acme") == {"n": 10}
    Tenant.objects.update(plan=Plan.objects.get(slug="free"))
    PlanLimit.objects.filter(plan__slug="free").update(rate="6/h")
    assert quotas("acme") == {"n": 6}


def test_all_tenants_at_once(plans: dict[str, Plan], other: Other) -> None:
    """More than are named one by one: everyone reads again, also after a later edit of plans."""
    Tenant.objects.bulk_create(Tenant(key=f"tenant-{n}", plan=plans["pro"]) for n in range(1_001))
    assert other.ask("quotas", "tenant-7") == {"n": 10}
    Tenant.objects.all().update(plan=plans["free"])
    PlanLimit.objects.filter(plan__slug="free").update(rate="6/h")
    assert other.ask("quotas", "tenant-7") == {"n": 6}


@pytest.mark.usefixtures("fresh")
def test_the_memory_store_forgets_versions_in_time() -> None:
    store = MemoryStore()
    store.set_versions({"a": "1"}, 0)
    assert store.versions(["a"]) == ("",)
