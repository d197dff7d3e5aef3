"""ratelimits_reset: what tenants have used is forgotten."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from ratelimits.limiter import peek, take
from ratelimits.models import Plan, ServiceLimit, Tenant
from tests.commands import run
from tests.servers import RedisServer

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def free() -> Plan:
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    plan.limits.create(name="calls", rate="10/h")
    plan.limits.create(name="finding", rate="5/h", scope="search")
    return plan


def used(key: str, scope: str = "") -> list[int]:
    return [10 - outcome.remaining for outcome in peek(key, scope=scope).outcomes]


@pytest.mark.usefixtures("on_redis")
def test_some_tenants() -> None:
    ServiceLimit.objects.create(name="breaker", rate="10/h")
    for key in ("a", "b", "c"):
        take(key, scope="search", cost=2)
    ended = run("ratelimits_reset", "a", "b", "a", "nobody")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "a: forgot calls 2, finding 2",
        "b: forgot calls 2, finding 2",
        "nobody: had used nothing",
    ]
    # The last one is everybody's.
    assert used("a") == [0, 6]
    assert used("c") == [2, 6]


@pytest.mark.usefixtures("on_redis")
def test_a_dry_run() -> None:
    take("a", cost=3)
    ended = run("ratelimits_reset", "a", "--dry-run")
    assert (ended.code, ended.out) == (0, "a: would forget calls 3\n")
    assert used("a") == [3]


@pytest.mark.usefixtures("on_redis")
def test_as_json() -> None:
    take("a", cost=3)
    found = json.loads(run("ratelimits_reset", "a", "b", "--json").out)
    assert found == {
        "format": 1,
        "dry_run": False,
        "tenants": [{"tenant": "a", "used": {"calls": 3}}, {"tenant": "b", "used": {}}],
        "fault": "",
    }


@pytest.mark.usefixtures("on_redis")
def test_all_of_a_plan(free: Plan) -> None:
    for key in ("a", "b"):
        Tenant.objects.create(key=key, plan=free)
        take(key)
    take("without a row")
    assert run("ratelimits_reset", "--plan", "free").out.count("forgot") == 2
    assert (used("a"), used("b"), used("without a row")) == ([0], [0], [1])


@pytest.mark.usefixtures("on_redis")
def test_the_history() -> None:
    User.objects.create_user("operator")
    tenant = Tenant.objects.create(key="a")
    assert run("ratelimits_reset", "a", "b", "--user", "operator").code == 0
    a, b = LogEntry.objects.order_by("pk")
    assert (a.object_id, a.get_change_message()) == (str(tenant.pk), "Reset what it had used.")
    assert (b.object_id, b.object_repr) == (None, "b")
    run("ratelimits_reset", "a", "--user", "operator", "--dry-run")
    assert LogEntry.objects.count() == 2


def test_a_store_that_is_away(on_redis: RedisServer, settings: Any) -> None:
    settings.RATELIMITS = {"STORE_TIMEOUT": 0.2}
    on_redis.stop()
    ended = run("ratelimits_reset", "a", "--json")
    assert ended.code == 2
    assert "0 tenants were reset; then it failed: the store can't be reached." in ended.err
    assert json.loads(ended.out)["fault"] == ended.err


@pytest.mark.usefixtures("fresh")
def test_nothing_is_counted(settings: Any) -> None:
    settings.RATELIMITS = {"MODE": "off"}
    ended = run("ratelimits_reset", "a")
    assert ended.code == 2 and "nothing is counted" in ended.err


@pytest.mark.usefixtures("fresh")
def test_the_memory_of_this_process_only() -> None:
    take("a")
    ended = run("ratelimits_reset", "a")
    assert ended.code == 0 and "Each process counts in its own memory" in ended.err
    assert used("a") == [0]


@pytest.mark.usefixtures("on_redis")
def test_a_plan_that_nobody_is_on_is_no_fault() -> None:
    ended = run("ratelimits_reset", "--plan", "free", "--json")
    assert (ended.code, json.loads(ended.out)["tenants"]) == (0, [])
    assert "No tenant's row has the plan “free”." in ended.err


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "Name the tenants"),
        (("a", ""), "Name the tenants"),
        (("--plan", "none"), "no plan “none”"),
        (("a", "--user", "nobody"), "no user “nobody”"),
    ],
)
def test_nothing_to_do(args: tuple[str, ...], said: str) -> None:
    ended = run("ratelimits_reset", *args)
    assert ended.code == 2 and said in ended.err
