"""ratelimits_show: where a tenant stands."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from ratelimits import rows
from ratelimits.limiter import peek, take
from ratelimits.models import Plan, ServiceLimit, Tenant
from tests.commands import run
from tests.servers import RedisServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Tenant:
    Plan.objects.create(slug="free", name="Free", is_default=True).limits.create(
        name="calls", rate="10/h"
    )
    pro = Plan.objects.create(slug="pro", name="Pro")
    pro.limits.create(name="calls", rate="3/h")
    pro.limits.create(name="finding", rate="1000/h", scope="search")
    tenant = Tenant.objects.create(key="user:7", plan=pro)
    tenant.limits.create(name="extra", rate="2000/h", burst=50, mode="shadow")
    ServiceLimit.objects.create(name="breaker", rate="1000/s")
    return tenant


def cells(text: str) -> dict[str, list[str]]:
    """The cells of each limit."""
    lines = [line.split("  ") for line in text.splitlines()]
    split = [[cell.strip() for cell in cells if cell.strip()] for cells in lines]
    return {row[0]: row[1:] for row in split if len(row) > 2}


def shown(*args: str) -> Any:
    ended = run("ratelimits_show", *args, "--json")
    return json.loads(ended.out)


@pytest.mark.usefixtures("on_redis")
def test_as_text(acme: Tenant) -> None:
    take("user:7", cost=2)
    ended = run("ratelimits_show", "user:7")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("user:7: plan pro\n")
    found = cells(ended.out)
    assert found["calls"] == ["3/h", "-", "all", "enforce", "plan pro", "1 of 3", "40 min"]
    assert found["finding"][2] == "search" and found["finding"][5] == "1,000 of 1,000"
    assert found["extra"] == ["2000/h", "50", "all", "shadow", "own", "48 of 50", "4 s"]
    assert found["breaker"][4] == "service"


@pytest.mark.usefixtures("on_redis")
def test_nothing_is_taken(acme: Tenant) -> None:
    run("ratelimits_show", "user:7")
    assert peek("user:7").outcomes[0].remaining == 3


@pytest.mark.usefixtures("on_redis")
def test_a_refused_tenant(acme: Tenant) -> None:
    assert run("ratelimits_show", "user:7", "--strict").code == 0
    take("user:7", cost=3)
    ended = run("ratelimits_show", "user:7", "--strict")
    assert (ended.code, ended.err) == (1, "The next request is refused.")
    assert "Refused now by “calls”; the next request passes in 20 min." in ended.out
    assert run("ratelimits_show", "user:7").code == 0


@pytest.mark.usefixtures("on_redis")
def test_as_json(acme: Tenant) -> None:
    acme.limits.create(name="calls", rate="5/h", expires_at=timezone.now() + timedelta(days=9))
    take("user:7", cost=4)
    found = shown("user:7")
    limits = {limit["name"]: limit for limit in found.pop("limits")}
    assert found == {
        "format": 1,
        "tenant": "user:7",
        "plan": "pro",
        "plan_is": "plan",
        "mode": "enforce",
        "counted": True,
        "store": True,
        "refused": False,
    }
    calls = limits["calls"]
    assert calls.pop("expires_at").startswith("20")
    assert 2000 < calls.pop("full_in") <= 4 * 720
    assert calls == {
        "name": "calls",
        "rate": "5/h",
        "burst": None,
        "scope": "",
        "algorithm": "token_bucket",
        "mode": "enforce",
        "per": "tenant",
        "from": "own",
        "replaces": "3/h",
        "capacity": 5,
        "used": 4,
        "left": 1,
        "refuses": False,
        "passes_in": None,
    }
    assert "own, replaces 3/h, until " in run("ratelimits_show", "user:7").out


@pytest.mark.usefixtures("on_redis")
def test_a_tenant_without_a_row(acme: Tenant) -> None:
    assert run("ratelimits_show", "user:8").out.startswith("user:8: plan free, the default\n")
    assert shown("user:8")["plan_is"] == "default"


@pytest.mark.usefixtures("on_redis")
def test_a_key_that_no_resolver_makes(acme: Tenant) -> None:
    assert "No resolver of this project makes a key like this." in run("ratelimits_show", "x").out


@pytest.mark.usefixtures("fresh")
def test_without_any_plan() -> None:
    ended = run("ratelimits_show", "user:7")
    assert "user:7: no plan" in ended.out and "No limit applies." in ended.out
    assert "Each process counts in its own memory" in ended.err


@pytest.mark.usefixtures("fresh")
def test_in_shadow(acme: Tenant, settings: Any) -> None:
    settings.RATELIMITS = {"MODE": "shadow"}
    assert "the mode of all limits is “shadow”" in run("ratelimits_show", "user:7").out


@pytest.mark.usefixtures("fresh")
def test_a_limit_of_zero(acme: Tenant) -> None:
    acme.limits.create(name="calls", rate="0/h")
    assert "Refused for good by “calls”." in run("ratelimits_show", "user:7").out


def test_a_store_that_is_away(acme: Tenant, on_redis: RedisServer, settings: Any) -> None:
    settings.RATELIMITS = {"STORE_TIMEOUT": 0.2}
    on_redis.stop()
    ended = run("ratelimits_show", "user:7")
    assert ended.code == 2 and "not known" in ended.err
    assert cells(ended.out)["calls"][5:] == ["-", "-"]
    assert shown("user:7")["store"] is False


@pytest.mark.usefixtures("fresh")
def test_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_plans() -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr(rows, "load_plans", load_plans)
    ended = run("ratelimits_show", "user:7")
    assert ended.code == 2 and "The limits can't be read: gone" in ended.err


@pytest.mark.usefixtures("fresh")
def test_no_key() -> None:
    assert run("ratelimits_show", "").code == 2
