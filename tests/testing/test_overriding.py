from __future__ import annotations

import unittest
from contextlib import nullcontext
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.test import Client, override_settings
from django.urls import path

from ratelimits import entering, rows
from ratelimits.conf import above
from ratelimits.decorators import ratelimit
from ratelimits.limiter import atake, take
from ratelimits.models import Plan, Tenant
from ratelimits.testing import off, override
from tests.commands import run
from tests.doors import for_everyone, left, make_plan, own_limit, per_address, problem
from tests.testing.limited import DropIn, View
from tests.views import SERVERS, AnyClient, function, hello

pytestmark = [pytest.mark.urls(__name__), pytest.mark.usefixtures("still")]
database = pytest.mark.django_db(transaction=True)


urlpatterns = [
    path("plan", View.as_view()),
    path("drop-in", DropIn.as_view()),
    path("code", ratelimit("100/d", by="ip", name="login")(hello)),
    path("async", ratelimit()(function(hello, True))),
]


def remaining(who: str, scope: str = "") -> dict[str, int]:
    """What is left of each limit after a take."""
    return {outcome.name: outcome.remaining for outcome in take(who, scope=scope).outcomes}


def passes(who: str, times: int) -> list[bool]:
    return [take(who).allowed for _ in range(times)]


# Everybody.


def test_everybody_has_it_without_a_database() -> None:
    """This test may not ask one."""
    with override("2/d"):
        for who in ("acme", "user:7"):
            assert passes(who, 3) == [True, True, False]
        assert remaining("bakery", "search") == {"api": 1}


@SERVERS
@pytest.mark.parametrize("url", ["/plan", "/async"])
async def test_at_the_doors(caller: AnyClient, url: str) -> None:
    caller = AnyClient(caller.is_async)
    with override("2/d", name="few"):
        assert await caller.statuses(3, url=url) == [200, 200, 429]
        assert problem(await caller.get(url))["violated-policies"] == ["few"]


@database
def test_instead_of_all_others(client: Client) -> None:
    make_plan("api 0/d", "search 0/d search")
    own_limit("acme", "0/d", "own")
    for_everyone("0/d")
    per_address("0/d")
    with override("5/d"):
        assert remaining("acme", "search") == {"api": 4}
        assert left(client.get("/plan")) == {"api": 4}
    assert not take("acme").allowed
    assert client.get("/plan").status_code == 429


def test_several_in_each_other() -> None:
    with override("5/d"), override("3/d", name="search", scope="search"):
        assert remaining("acme") == {"api": 4}
        assert remaining("acme", "search") == {"api": 3, "search": 2}
        with override("9/d"):
            assert remaining("acme", "search") == {"api": 8, "search": 2}
        assert remaining("acme") == {"api": 2}


@pytest.mark.parametrize(
    ("options", "passing"),
    [
        ({"burst": 3}, [True] * 3 + [False]),
        ({"algorithm": "fixed_window"}, [True] + [False] * 3),
        ({"mode": "shadow"}, [True] * 4),
        ({"mode": "off"}, [True] * 4),
    ],
    ids=lambda options: str(options),
)
def test_all_that_a_limit_has(options: dict[str, Any], passing: list[bool]) -> None:
    with override("1/d", **options):
        assert passes("acme", 4) == passing


def test_unlimited() -> None:
    with override("unlimited"):
        assert take("acme", cost=1_000_000).outcomes == ()


@pytest.mark.parametrize(
    ("rate", "options"),
    [
        ("ten", {}),
        ("1/d", {"name": ""}),
        ("1/d", {"burst": 0}),
        ("1/d", {"algorithm": "leaky"}),
        ("1/d", {"mode": "loud"}),
        ("1/d", {"algorithm": "fixed_window", "burst": 2}),
        ("1/d", {"plan": "free", "tenant": "acme"}),
        ("1/d", {"plan": "free", "in_code": True}),
    ],
)
def test_what_can_not_be_is_told_where_it_is_said(rate: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        override(rate, **options)


# A plan's, or a tenant's.


@database
def test_a_limit_of_a_plan() -> None:
    make_plan("api 9/d", "search 9/d search")
    pro = Plan.objects.create(slug="pro", name="Pro")
    pro.limits.create(name="api", rate="100/d")
    Tenant.objects.create(key="clinic", plan=pro)
    with override("2/d", plan="free"):
        assert remaining("acme", "search") == {"api": 1, "search": 8}
        assert remaining("clinic") == {"api": 99}
        with override("7/d", plan="pro", name="more"):
            assert remaining("clinic") == {"api": 99, "more": 6}
    assert remaining("acme", "search") == {"api": 8, "search": 8}


@database
def test_what_is_not_said_is_as_it_was() -> None:
    plan = make_plan("api 9/d")
    plan.limits.create(name="search", rate="9/d", scope="search", algorithm="fixed_window")
    plan.limits.create(name="month", rate="9/month", algorithm="fixed_window", mode="shadow")
    with override("2/d", plan="free", name="search"):
        assert remaining("acme") == {"api": 8, "month": 8}
        limits = {each.name: each.limit for each in take("acme", scope="search").outcomes}
        assert limits["search"].algorithm == "fixed_window"
    with override("2/month", plan="free", name="month"):
        assert passes("acme", 3) == [True, True, False]


@database
@pytest.mark.parametrize("in_transaction", [False, True])
def test_of_a_plan_that_is_edited_meanwhile(in_transaction: bool) -> None:
    """Also in a transaction, as that of a test."""
    with transaction.atomic() if in_transaction else nullcontext():
        plan = make_plan("api 9/d")
        with override("2/d", plan="free"):
            assert remaining("acme") == {"api": 1}
            plan.limits.create(name="more", rate="5/d")
            assert remaining("acme") == {"api": 0, "more": 4}
        assert remaining("acme") == {"api": 8, "more": 4}


@database
def test_of_a_plan_that_is_not_there() -> None:
    make_plan()
    with override("2/d", plan="fre"), pytest.raises(LookupError, match='no plan "fre"'):
        take("acme")


@database
def test_a_limit_of_a_tenant() -> None:
    make_plan("api 9/d", "search 9/d search")
    own_limit("acme", "5/d")
    with override("2/d", tenant="acme"), override("1/d", tenant="acme", name="search"):
        assert remaining("acme", "search") == {"api": 1, "search": 0}
        assert remaining("acme") == {"api": 0}
        assert remaining("bakery") == {"api": 8}
    assert remaining("acme") == {"api": 4}


def test_a_tenant_among_everybody() -> None:
    with override("2/d"), override("5/d", tenant="acme"):
        assert remaining("acme") == {"api": 4}
        assert remaining("bakery") == {"api": 1}
        with override("3/d"):
            assert remaining("acme") == {"api": 2}


# In code.


@pytest.mark.parametrize(("url", "name"), [("/code", "login"), ("/drop-in", "user")])
def test_a_limit_in_code(client: Client, url: str, name: str) -> None:
    with override("2/d", name=name, in_code=True):
        assert [client.get(url).status_code for _ in range(3)] == [200, 200, 429]
        assert left(client.get(url)) == {name: 0}
    assert left(client.get(url)) == {name: 99}
    with override("2/d", name="another", in_code=True):
        assert left(client.get(url)) == {name: 99}
    for options in ({"rate": "unlimited"}, {"rate": "1/d", "mode": "off"}):
        with override(name=name, in_code=True, **options):  # type: ignore[arg-type]
            assert "RateLimit" not in client.get(url).headers


def test_the_innermost_one_counts(client: Client) -> None:
    with override("5/d", name="login", in_code=True):
        with override("2/d", name="login", in_code=True):
            assert left(client.get("/code")) == {"login": 1}
        with override("unlimited", name="login", in_code=True):
            assert "RateLimit" not in client.get("/code").headers
        assert left(client.get("/code")) == {"login": 4}


def test_everybody_keeps_what_is_around_others() -> None:
    with override("5/d"), override("4/d", tenant="acme"), override("3/d", name="more"):
        assert remaining("acme") == {"api": 4, "more": 2}


# How long it holds.


@database
def test_all_is_full_within_and_as_it_was_behind() -> None:
    make_plan("api 3/d")
    assert remaining("acme") == {"api": 2}
    with override("3/d", plan="free"):
        assert remaining("acme") == {"api": 2}
    assert remaining("acme") == {"api": 1}


@override("1/d")
def decorated() -> list[bool]:
    return passes("acme", 2)


@override("1/d")
async def adecorated() -> list[bool]:
    return [(await atake("acme")).allowed for _ in range(2)]


async def test_as_a_decorator() -> None:
    for _ in range(2):
        assert await sync_to_async(decorated)() == [True, False]
        assert await adecorated() == [True, False]


def test_as_a_decorator_of_tests() -> None:
    @override("1/d")
    class Tests(unittest.TestCase):
        def test_one(self) -> None:
            self.assertEqual(passes("acme", 2), [True, False])

        def test_another(self) -> None:
            self.assertEqual(passes("acme", 2), [True, False])

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests).run(result)
    assert (result.testsRun, result.errors, result.failures) == (2, [], [])


@override_settings(RATELIMITS={"MODE": "off"})
def test_it_enforces_where_limits_are_off() -> None:
    """As they are in tests of something else."""
    with override("1/d"):
        assert passes("acme", 2) == [True, False]
    with off(), override("1/d"):
        assert passes("acme", 2) == [True, False]
    with override("1/d"), off():
        assert passes("acme", 2) == [True, True]
    assert passes("acme", 2) == [True, True]


@override_settings(RATELIMITS={"MODE": "off"})
def test_it_enforces_what_is_in_code_as_well(client: Client) -> None:
    with override("5/d", name="more"):
        assert left(client.get("/code")) == {"login": 99}
    assert "RateLimit" not in client.get("/code").headers


@override_settings(RATELIMITS={"MODE": "shadow"})
def test_a_mode_that_tests_are_about_stays() -> None:
    with override("1/d"):
        assert passes("acme", 2) == [True, True]


@pytest.mark.parametrize("in_transaction", [False, True])
@database
def test_what_an_operator_switches_to_meanwhile_counts(in_transaction: bool) -> None:
    with override("1/d"), transaction.atomic() if in_transaction else nullcontext():
        assert run("ratelimits_mode", "shadow", "--for", "1h").code == 0
        assert passes("acme", 2) == [True, True]


@database
def test_nothing_is_left_behind_by_a_test_that_fails() -> None:
    make_plan("api 0/d")
    before = (rows.load_plans, rows.load_tenant, entering._group)
    for options in ({}, {"plan": "free"}, {"tenant": "acme"}, {"in_code": True}):
        with pytest.raises(ZeroDivisionError), override("1/d", **options):
            1 / 0  # noqa: B018
    assert (rows.load_plans, rows.load_tenant, entering._group) == before
    assert above == []
    assert not take("acme").allowed


@pytest.mark.usefixtures("on_redis")
@database
def test_on_redis(client: Client) -> None:
    make_plan("api 9/d")
    with override("2/d", plan="free"):
        assert [client.get("/plan").status_code for _ in range(3)] == [200, 200, 429]
    assert left(client.get("/plan")) == {"api": 8}
