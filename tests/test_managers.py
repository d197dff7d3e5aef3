"""Edits that send no post_save or post_delete are announced by signals of our own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core import serializers
from django.db.models import F, Value
from django.db.models.functions import Concat
from django.db.models.signals import post_save

from ratelimits.models import Plan, PlanLimit, ServiceLimit, Tenant, TenantLimit, managers
from ratelimits.signals import plans_edited, tenants_edited

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan() -> Plan:
    return Plan.objects.create(slug="free", name="Free")


@pytest.fixture
def tenants(plan: Plan) -> list[Tenant]:
    return [Tenant.objects.create(key=key, plan=plan) for key in ("a", "b", "c")]


@pytest.fixture
def limits(tenants: list[Tenant]) -> list[TenantLimit]:
    return [tenant.limits.create(name="n", rate="1/s") for tenant in tenants]


class Heard(list[Any]):
    def plans(self, sender: type, using: str, **kwargs: Any) -> None:
        self.append((sender, using))

    def tenants(self, sender: type, using: str, keys: list[str] | None, **kwargs: Any) -> None:
        self.append((using, keys if keys is None else sorted(keys)))


@pytest.fixture
def heard_plans() -> Iterator[Heard]:
    heard = Heard()
    plans_edited.connect(heard.plans)
    yield heard
    plans_edited.disconnect(heard.plans)


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    tenants_edited.connect(heard.tenants)
    yield heard
    tenants_edited.disconnect(heard.tenants)


def test_plans_are_announced(plan: Plan, heard_plans: Heard) -> None:
    Plan.objects.update(name="Free of charge")
    PlanLimit.objects.bulk_create([PlanLimit(plan=plan, name="n", rate="1/s")])
    PlanLimit.objects.bulk_update(PlanLimit.objects.all(), ["mode"])
    plan.limits.update(burst=5)
    ServiceLimit.objects.all().delete()
    senders = [Plan, PlanLimit, PlanLimit, PlanLimit, ServiceLimit]
    assert heard_plans == [(sender, "default") for sender in senders]


def test_plans_are_announced_after_the_change(plan: Plan) -> None:
    names: list[str] = []

    def look(**kwargs: Any) -> None:
        names.append(Plan.objects.get().name)

    plans_edited.connect(look)
    try:
        Plan.objects.update(name="New")
    finally:
        plans_edited.disconnect(look)
    assert names == ["New"]


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
async def test_async_twins_are_announced(heard_plans: Heard, heard: Heard) -> None:
    await Plan.objects.acreate(slug="s", name="S")
    await Plan.objects.aupdate(name="T")
    await Tenant.objects.abulk_create([Tenant(key="x")])
    await Tenant.objects.filter(key="x").adelete()
    assert heard_plans == [(Plan, "default")]
    assert heard == [("default", ["x"])] * 2


def test_updates_name_the_tenants(tenants: list[Tenant], heard: Heard) -> None:
    Tenant.objects.exclude(key="c").update(plan=None)
    assert heard == [("default", ["a", "b"])]


def test_updates_that_no_longer_match_name_the_tenants(
    plan: Plan, tenants: Any, heard: Any
) -> None:
    plan.tenants.update(plan=None)
    assert heard == [("default", ["a", "b", "c"])]


def test_related_managers_announce(plan: Plan, tenants: list[Tenant], heard: Heard) -> None:
    plan.tenants.remove(tenants[0])
    plan.tenants.add(tenants[0])
    plan.tenants.clear()
    assert heard == [("default", ["a"])] * 2 + [("default", ["a", "b", "c"])]


def test_bulk_updates_name_the_tenants(tenants: list[Tenant], heard: Heard) -> None:
    Tenant.objects.bulk_update(tenants[:2], ["notes"])
    assert heard == [("default", ["a", "b"])]


def test_deleting_names_the_tenants(tenants: list[Tenant], heard: Heard) -> None:
    Tenant.objects.filter(key="b").delete()
    assert heard == [("default", ["b"])]


def test_renaming_names_both_keys(tenants: list[Tenant], heard: Heard) -> None:
    Tenant.objects.filter(key="b").update(key="z")
    assert heard == [("default", ["b", "z"])]


def test_renaming_by_expression_means_everybody(tenants: list[Tenant], heard: Heard) -> None:
    Tenant.objects.update(key=Concat(Value("user:"), F("key")))
    assert heard == [("default", None)]


def test_creating_names_the_tenants(heard: Heard) -> None:
    Tenant.objects.bulk_create([Tenant(key="x"), Tenant(key="y")])
    assert heard == [("default", ["x", "y"])]


def test_many_tenants_are_not_named(
    tenants: list[Tenant], heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managers, "MOST_KEYS", 2)
    Tenant.objects.update(notes="x")
    Tenant.objects.exclude(key="a").update(notes="y")
    Tenant.objects.bulk_create([Tenant(key=key) for key in "xyz"])
    assert heard == [("default", None), ("default", ["b", "c"]), ("default", None)]


def test_own_limits_name_their_tenants(limits: list[TenantLimit], heard: Heard) -> None:
    TenantLimit.objects.exclude(tenant__key="a").update(rate="2/s")
    TenantLimit.objects.bulk_update(limits[:1], ["burst"])
    limits[0].tenant.limits.create(name="second", rate="1/s")
    limits[0].tenant.limits.all().delete()
    assert heard == [("default", ["b", "c"]), ("default", ["a"]), ("default", ["a"])]


def test_own_limits_created_in_bulk(tenants: list[Tenant], heard: Heard) -> None:
    rows = [TenantLimit(tenant_id=row.pk, name="n", rate="1/s") for row in tenants[1:]]
    TenantLimit.objects.bulk_create(rows)
    assert heard == [("default", ["b", "c"])]


def test_own_limits_that_move_mean_everybody(limits: list[TenantLimit], heard: Heard) -> None:
    TenantLimit.objects.filter(pk=limits[0].pk).update(tenant=limits[1].tenant, name="m")
    assert heard == [("default", None)]


def edited_by_saving(sender: Any, change: Any) -> list[list[str]]:
    keys: list[list[str]] = []

    def listen(instance: Any, **kwargs: Any) -> None:
        keys.append(instance.edited_keys())

    post_save.connect(listen, sender=sender)
    try:
        change()
    finally:
        post_save.disconnect(listen, sender=sender)
    return keys


def test_a_saved_tenant_knows_its_old_key(tenants: list[Tenant]) -> None:
    tenant = tenants[0]
    assert edited_by_saving(Tenant, tenant.save) == [["a"]]
    tenant.key = "z"
    assert edited_by_saving(Tenant, tenant.save) == [["a", "z"]]
    assert edited_by_saving(Tenant, tenant.save) == [["z"]]


def test_a_tenant_that_was_not_loaded_knows_its_old_key(tenants: list[Tenant]) -> None:
    assert edited_by_saving(Tenant, Tenant(pk=tenants[0].pk, key="z").save) == [["a", "z"]]


def test_a_fixture_that_renames_knows_the_old_key(tenants: list[Tenant]) -> None:
    dumped = serializers.serialize("json", tenants[:1]).replace('"a"', '"z"')
    (item,) = serializers.deserialize("json", dumped)
    assert edited_by_saving(Tenant, item.save) == [["a", "z"]]


def test_a_new_tenant_has_one_key() -> None:
    assert edited_by_saving(Tenant, Tenant(key="new").save) == [["new"]]


def test_an_own_limit_that_moves_knows_both_tenants(limits: list[TenantLimit]) -> None:
    limit = limits[0]
    assert edited_by_saving(TenantLimit, limit.save) == [["a"]]
    limit.tenant, limit.name = limits[1].tenant, "m"
    assert edited_by_saving(TenantLimit, limit.save) == [["a", "b"]]


def test_a_fixture_may_name_the_tenant_after_its_limit(tenants: list[Tenant]) -> None:
    missing = tenants[0].pk + 100
    fields = {"tenant": missing, "name": "n", "rate": "1/s"}
    row = {"model": "ratelimits.tenantlimit", "pk": 1, "fields": fields}
    (item,) = serializers.deserialize("python", [row])
    assert edited_by_saving(TenantLimit, item.save) == [[]]
    Tenant.objects.create(pk=missing, key="late")
