"""ratelimits_check: what an operator should look at."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import OperationalError
from freezegun import freeze_time

from ratelimits import rows, usage
from ratelimits.audit.report import audit
from ratelimits.limiter import take
from ratelimits.models import (
    Plan,
    PlanLimit,
    ScopeCost,
    ServiceLimit,
    Tenant,
    TenantLimit,
    Upstream,
)
from tests.commands import run
from tests.fresh import PATIENT
from tests.pseudo import pseudo, unmarked
from tests.servers import RedisServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh")]


@pytest.fixture(autouse=True)
def plans() -> dict[str, Plan]:
    free = Plan.objects.create(slug="free", name="Free", is_default=True)
    free.limits.create(name="calls", rate="60/m", burst=20)
    pro = Plan.objects.create(slug="pro", name="Pro")
    pro.limits.create(name="calls", rate="600/m")
    pro.limits.create(name="daily", rate="1000/d")
    return {"free": free, "pro": pro}


def found(name: str) -> Any:
    (finding,) = [finding for finding in audit() if finding.name == name]
    return finding


def warned(name: str, *named: str) -> str:
    """The text of a warning about exactly these."""
    finding = found(name)
    assert finding.level == "warning"
    assert finding.value == {"count": len(named), "named": list(named)}
    return str(finding.text)


def test_nothing_to_say() -> None:
    ended = run("ratelimits_check", "--strict")
    assert (ended.code, ended.err) == (0, "")
    assert {finding.level for finding in audit()} == {"ok"}
    for finding in audit():
        assert f"ok       {finding.name}: {finding.text}" in ended.out


def test_translated() -> None:
    with pseudo():
        texts = [text for finding in audit() for text in (finding.text, finding.advice)]
    assert [word for text in texts for word in unmarked(text)] == []


def test_translated_warnings() -> None:
    """But for what is named, and what the log says of a row."""
    Tenant.objects.create(key="7")
    PlanLimit.objects.filter(name="daily").update(name="1", rate="2")
    fault = rows.fault_of(PlanLimit.objects.get(name="1"))
    ServiceLimit.objects.create(name="3", rate="4/s", per="address")
    ScopeCost.objects.create(scope="5", cost=6)
    with pseudo():
        found = [finding for finding in audit() if finding.level == "warning"]
    words = {word for each in found for word in unmarked(each.text + each.advice)}
    assert len(found) == 4
    assert words <= {"PlanLimit", "pro", *unmarked(fault)}


def test_exit_codes_and_json(settings: Any) -> None:
    Plan.objects.update(is_default=False)
    assert run("ratelimits_check").code == 0
    ended = run("ratelimits_check", "--strict", "--json")
    assert (ended.code, ended.err) == (1, "0 problems, 1 warning")
    told = json.loads(ended.out)
    assert (told["format"], told["level"]) == (1, "warning")
    assert told["findings"][0]["name"] == "ratelimits.W031"


def test_what_can_not_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_plans() -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr(rows, "load_plans", load_plans)
    ended = run("ratelimits_check")
    assert ended.code == 2
    assert "service: This can't be looked at: OperationalError('gone')" in ended.out
    assert "rows.bad" in ended.out


def test_bad_rows() -> None:
    PlanLimit.objects.filter(name="daily").update(rate="lots")
    row = PlanLimit.objects.get(name="daily")
    warned("rows.bad", f"PlanLimit {row.pk} “daily”: {rows.fault_of(row)}")


def test_only_some_are_named_in_the_text() -> None:
    keys = [f"key-{number}" for number in range(7)]
    Tenant.objects.bulk_create(Tenant(key=key) for key in keys)
    text = warned("tenants.keys", *keys)
    assert text.startswith("7 tenants have keys that no resolver makes: key-0, key-1, ")
    assert text.endswith("key-4, ...")


def test_keys_that_no_resolver_makes() -> None:
    for key in ("user:7", "user:x", "org:7"):
        Tenant.objects.create(key=key)
    warned("tenants.keys", "org:7", "user:x")
    assert "user:7" in found("tenants.keys").advice


def test_limits_that_replace_nothing_any_more(plans: dict[str, Plan]) -> None:
    acme = Tenant.objects.create(key="user:1", plan=plans["pro"])
    acme.limits.create(name="daily", rate="5000/d")
    acme.limits.create(name="extra", rate="5/d")
    Tenant.objects.create(key="user:2").limits.create(name="calls", rate="90/m")
    TenantLimit.objects.filter(name="daily").update(replaces="pro/daily 1000/d")
    TenantLimit.objects.filter(name="calls").update(replaces="free/calls 60/m")
    assert found("limits.orphans").level == "ok"
    PlanLimit.objects.filter(name="daily").delete()
    warned("limits.orphans", "user:1/daily (pro/daily 1000/d)")


def test_costs_of_scopes_that_nothing_has(plans: dict[str, Plan]) -> None:
    ScopeCost.objects.create(scope="search", cost=5)
    warned("scopes.unused", "search")
    plans["pro"].limits.create(name="finding", rate="1/s", scope="search")
    assert found("scopes.unused").level == "ok"


def test_a_limit_for_everyone_below_the_sum(plans: dict[str, Plan]) -> None:
    """In a minute 60 each on free; on pro 600, until the thousand of the day are used up."""
    for number in range(3):
        Tenant.objects.create(key=f"user:{number}")
        Tenant.objects.create(key=f"user:1{number}", plan=plans["pro"])
    breaker = ServiceLimit.objects.create(name="breaker", rate="1980/m")
    assert found("service.sum").level == "ok"
    breaker.rate = "1979/m"
    breaker.save()
    warned("service.sum", "“breaker” (1979/m), while 1,980 were sold")
    # In an hour the day's limit is the tighter one.
    breaker.rate = f"{3 * 3600 + 3 * 1000}/h"
    breaker.save()
    assert found("service.sum").level == "ok"
    ServiceLimit.objects.update(mode="shadow", rate="1/m")
    assert found("service.sum").level == "ok"


def test_the_sum_with_limits_of_tenants(plans: dict[str, Plan]) -> None:
    Tenant.objects.create(key="user:1").limits.create(name="calls", rate="100/m")
    Tenant.objects.create(key="user:2", plan=plans["pro"]).limits.create(name="x", rate="9/m")
    Tenant.objects.create(key="user:3", plan=plans["pro"]).limits.create(
        name="calls", rate="unlimited"
    )
    ServiceLimit.objects.create(name="breaker", rate="110/m")
    assert found("service.sum").level == "ok"
    ServiceLimit.objects.update(rate="109/m")
    # The last one's day has two thirds of a unit a minute.
    warned("service.sum", "“breaker” (109/m), while 110 were sold")


def test_the_sum_of_a_scope(plans: dict[str, Plan]) -> None:
    plans["free"].limits.create(name="finding", rate="5/m", scope="search")
    Tenant.objects.create(key="user:1")
    ServiceLimit.objects.create(name="breaker", rate="6/m", scope="search")
    assert found("service.sum").level == "ok"
    ServiceLimit.objects.update(rate="4/m")
    warned("service.sum", "“breaker” (4/m), while 5 were sold")


def test_a_limit_for_each_address_below_a_plan() -> None:
    ServiceLimit.objects.create(name="flood", rate="100/m", per="address")
    warned("service.address", "“flood” (100/m): pro")


def test_upstreams_that_can_not_be_meant_so() -> None:
    vendor = Upstream.objects.create(slug="vendor", guard=0, max_wait=900)
    vendor.limits.create(name="calls", rate="10/s", kind="bucket")
    assert found("upstreams.mistakes").level == "ok"
    vendor.limits.create(name="share", rate="10/s", per="tenant")
    Upstream.objects.create(slug="empty")
    share, empty = "lets one customer have all of “calls”", "It has no limits"
    text = str(found("upstreams.mistakes").text)
    assert text.startswith("2 upstreams have limits that can't be meant so: empty: It has no")
    assert [told.split(":")[0] for told in found("upstreams.mistakes").value["named"]] == [
        "empty",
        "vendor",
    ]
    assert share in text and empty in text


@freeze_time("2026-07-01 12:00:10")
def test_what_tenants_used(on_redis: RedisServer, settings: Any, plans: dict[str, Plan]) -> None:
    settings.RATELIMITS = {**PATIENT, "CLOCK": "process"}
    for number in range(3):
        Tenant.objects.create(key=f"user:{number}", plan=plans["free"])
    assert found("usage").value == {"known": False}
    Tenant.objects.get(key="user:1").limits.create(name="calls", rate="200/m")
    for key in ("user:0", "user:1"):
        for _ in range(9):
            take(key, cost=10)
    usage.flush()
    warned("tenants.above_plan", "user:1: 90 in a minute of “calls” (60/m)")
    warned("tenants.unseen", "user:2")


def test_what_only_this_process_knows() -> None:
    """A command has taken nothing itself, and sees no other process's memory."""
    Tenant.objects.create(key="user:1")
    take("user:2")
    usage.flush()
    assert found("usage").value == {"known": False}


def test_usage_with_the_store_away(on_redis: RedisServer, settings: Any) -> None:
    settings.RATELIMITS = {"STORE_TIMEOUT": 0.2}
    on_redis.stop()
    ended = run("ratelimits_check")
    assert ended.code == 2
    assert "usage: What tenants used can't be read: " in ended.out
