from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import AnonymousUser, User
from rest_framework.request import Request

from ratelimits import limiter
from ratelimits.limits import Decision
from ratelimits.models import PlanLimit
from tests.doors import PREFLIGHT, for_everyone, make_plan, per_address, request

pytestmark = pytest.mark.django_db(transaction=True)


class Functions:
    """The functions of the limiter, or their twins, called alike."""

    def __init__(self, are_async: bool) -> None:
        self.are_async = are_async

    def __getattr__(self, name: str) -> Callable[..., Any]:
        twin: Callable[..., Awaitable[Any]] = getattr(limiter, f"a{name}")
        return async_to_sync(twin) if self.are_async else getattr(limiter, name)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def calls(request: pytest.FixtureRequest) -> Functions:
    return Functions(request.param)


def remaining(decision: Decision) -> dict[str, int]:
    return {outcome.name: outcome.remaining for outcome in decision.outcomes}


def of_user(user: Any = None, **options: Any) -> Any:
    made = request(**options)
    made.user = user or AnonymousUser()
    return made


def test_take(calls: Functions) -> None:
    make_plan("api 10/d", "search 5/d search")
    decision = calls.take("acme", scope="search", cost=5)
    assert decision.allowed
    assert remaining(decision) == {"api": 5, "search": 0}
    assert decision.wait is None
    refused = calls.take("acme", scope="search")
    assert not refused.allowed
    assert remaining(refused) == {"api": 5, "search": 0}
    assert [outcome.name for outcome in refused.violated] == ["search"]
    assert timedelta(hours=4) < refused.wait <= timedelta(hours=4.8)
    assert refused.headers()["Retry-After"] == str(refused.retry_after)
    assert calls.take("bakery", scope="search").allowed


def test_peek_changes_nothing(calls: Functions) -> None:
    """Case 46: peek, take, peek, take."""
    make_plan("api 1/h")
    steps = [calls.peek("acme"), calls.take("acme"), calls.peek("acme"), calls.take("acme")]
    assert [step.allowed for step in steps] == [True, True, False, False]
    assert [remaining(step)["api"] for step in steps] == [1, 0, 0, 0]


def test_charge_empties_at_most(calls: Functions) -> None:
    """Rule 11: no debt, and never a refusal."""
    make_plan("api 10/d")
    decision = calls.charge("acme", cost=120)
    assert decision.allowed
    assert remaining(decision) == {"api": 0}
    refused = calls.take("acme")
    assert refused.retry_after == 8640


def test_refund_gives_back(calls: Functions) -> None:
    make_plan("api 10/d")
    calls.take("acme", cost=8)
    assert remaining(calls.refund("acme", cost=5)) == {"api": 7}
    assert remaining(calls.refund("acme", cost=100)) == {"api": 10}


def test_scopes_of_charge_and_refund(calls: Functions) -> None:
    make_plan("api 10/d", "search 5/d search")
    assert remaining(calls.charge("acme", scope="search", cost=2)) == {"api": 8, "search": 3}
    assert remaining(calls.refund("acme", cost=1)) == {"api": 9}


def test_reset_forgets_all_scopes_of_one_caller(calls: Functions) -> None:
    """And not what everybody shares."""
    make_plan("api 10/d", "search 5/d search")
    for_everyone("100/d")
    for key in ("acme", "bakery"):
        calls.take(key, scope="search", cost=3)
    assert calls.reset("acme") is None
    fresh = calls.peek("acme", scope="search")
    assert remaining(fresh) == {"api": 10, "search": 5, "everyone": 94}
    assert remaining(calls.peek("bakery", scope="search"))["api"] == 7


def test_a_request_is_its_tenant(calls: Functions) -> None:
    make_plan("api 10/d")
    user = User.objects.create(username="ann")
    calls.take(of_user(user), cost=3)
    assert remaining(calls.peek(f"user:{user.pk}")) == {"api": 7}
    calls.charge(of_user(user), cost=2)
    calls.refund(of_user(user), cost=1)
    assert remaining(calls.peek(of_user(user))) == {"api": 6}
    calls.reset(of_user(user))
    assert remaining(calls.peek(f"user:{user.pk}")) == {"api": 10}


def test_a_request_of_nobody_is_its_address(calls: Functions) -> None:
    make_plan("api 10/d")
    calls.take(of_user(REMOTE_ADDR="192.0.2.1"), cost=3)
    calls.take(of_user(REMOTE_ADDR="192.0.2.2"), cost=1)
    assert remaining(calls.peek(request(REMOTE_ADDR="192.0.2.1"))) == {"api": 7}
    calls.reset(of_user(REMOTE_ADDR="192.0.2.1"))
    assert remaining(calls.peek(of_user(REMOTE_ADDR="192.0.2.1"))) == {"api": 10}
    assert remaining(calls.peek(of_user(REMOTE_ADDR="192.0.2.2"))) == {"api": 9}


def test_drfs_request_is_djangos(calls: Functions) -> None:
    make_plan("api 10/d")
    inner = request()
    calls.take(Request(inner), cost=2)
    assert remaining(calls.take(inner, cost=3)) == {"api": 7}
    assert inner.ratelimit is Request(inner).ratelimit  # type: ignore[attr-defined]


def test_one_request_is_counted_once_at_the_highest_cost(calls: Functions) -> None:
    """Rule 10."""
    make_plan("api 10/d", "search 10/d search")
    asked = of_user()
    costs = [(2, ""), (1, ""), (5, ""), (3, "search"), (5, "search")]
    decisions = [calls.take(asked, scope=scope, cost=cost) for cost, scope in costs]
    assert all(decision.allowed for decision in decisions)
    assert [remaining(decision)["api"] for decision in decisions] == [8, 8, 5, 5, 5]
    assert remaining(asked.ratelimit) == {"api": 5, "search": 5}
    assert remaining(calls.peek(of_user())) == {"api": 5}


def test_each_request_counts_anew(calls: Functions) -> None:
    make_plan("api 10/d")
    calls.take(of_user())
    assert remaining(calls.take(of_user())) == {"api": 8}


def test_a_larger_take_that_is_refused_leaves_the_smaller(calls: Functions) -> None:
    """Of a view that asks for much, and then makes do with less."""
    make_plan("api 10/d")
    asked = of_user()
    assert calls.take(asked, cost=4).allowed
    refused = calls.take(asked, cost=11)
    assert not refused.allowed
    assert refused.wait is None
    assert [outcome.cost for outcome in refused.outcomes] == [11]
    again = calls.take(asked, cost=4)
    assert again.allowed
    assert remaining(again) == {"api": 6}


def test_what_was_taken_before_stays_allowed(calls: Functions) -> None:
    """Whatever else was refused since."""
    make_plan("api 10/d", "search 1/d search")
    asked = of_user()
    assert calls.take(asked, scope="search").allowed
    assert not calls.take(asked, scope="search", cost=2).allowed
    assert calls.take(asked).allowed
    assert calls.take(asked, scope="search").allowed
    assert remaining(calls.peek(of_user(), scope="search")) == {"api": 9, "search": 0}


def test_after_the_wait_the_raised_request_passes(calls: Functions, settings: Any) -> None:
    """Rule 5, for a cost that is asked for in two steps."""
    from freezegun import freeze_time

    settings.RATELIMITS = {"CLOCK": "process"}
    make_plan("api 10/d")
    with freeze_time("2026-11-30 12:00:00") as clock:
        calls.charge("acme", cost=7)
        settings.RATELIMITS = {"CLOCK": "process", "TENANT": lambda request: "acme"}

        def in_two_steps() -> Decision:
            asked = request()
            assert calls.take(asked).allowed
            decision: Decision = calls.take(asked, cost=5)
            return decision

        refused = in_two_steps()
        assert not refused.allowed
        assert refused.wait == timedelta(seconds=2 * 8640)
        clock.tick(refused.wait - timedelta(microseconds=1))
        assert not in_two_steps().allowed
        clock.tick(timedelta(microseconds=1))
        assert in_two_steps().allowed


def test_a_refund_makes_units_cost_again(calls: Functions) -> None:
    make_plan("api 10/d")
    asked = of_user()
    for given_back in (4, 100):
        calls.take(asked, cost=4)
        assert remaining(calls.refund(asked, cost=given_back)) == {"api": 10}
    assert remaining(calls.take(asked, cost=3)) == {"api": 7}


def test_a_charge_is_not_part_of_what_was_asked(calls: Functions) -> None:
    make_plan("api 10/d")
    asked = of_user()
    calls.take(asked)
    assert remaining(calls.charge(asked, cost=3)) == {"api": 6}
    assert remaining(asked.ratelimit) == {"api": 6}
    assert remaining(calls.take(asked, cost=2)) == {"api": 5}


def test_a_peek_is_not_told_to_the_caller(calls: Functions) -> None:
    make_plan("api 10/d")
    asked = of_user()
    calls.peek(asked, cost=100)
    assert not hasattr(asked, "ratelimit")
    calls.take(asked)
    calls.peek(asked, cost=100)
    assert asked.ratelimit.allowed


@pytest.mark.parametrize("cost", [-1, 1.0, "1", None, True])
@pytest.mark.parametrize("name", ["take", "peek", "charge", "refund"])
@pytest.mark.parametrize("mode", ["enforce", "off"])
def test_costs_that_are_none(
    calls: Functions, name: str, cost: Any, settings: Any, mode: str
) -> None:
    """Also while nothing is limited: it is a mistake in code."""
    settings.RATELIMITS = {"MODE": mode}
    with pytest.raises(ValueError, match="whole number of units"):
        getattr(calls, name)("acme", cost=cost)


@pytest.mark.parametrize("who", ["", None, 5, b"acme", object()])
@pytest.mark.parametrize("name", ["take", "peek", "charge", "refund", "reset"])
def test_keys_that_are_none(calls: Functions, name: str, who: Any) -> None:
    make_plan()
    arguments = {} if name == "reset" else {"cost": 1}
    with pytest.raises(ValueError, match="key"):
        getattr(calls, name)(who, **arguments)


@pytest.mark.parametrize("key", ["a" * 5000, "Größe\n\x00", "a:b", "user:1", " ", "\ud800"])
def test_any_text_is_a_key(calls: Functions, key: str) -> None:
    make_plan("api 2/d")
    assert [calls.take(key).allowed for _ in range(3)] == [True, True, False]
    assert calls.take(key + "x").allowed


def test_cost_zero_asks_whether_anything_is_left(calls: Functions) -> None:
    make_plan("api 1/d")
    assert remaining(calls.take("acme", cost=0)) == {"api": 1}
    assert calls.take("acme").allowed
    assert calls.take("acme", cost=0).allowed


def test_a_quota_of_zero_refuses_whatever_the_cost(calls: Functions) -> None:
    """Rule 6: can never pass, and nothing is taken."""
    make_plan("api 10/d", "search 0/d search")
    refused = calls.take("acme", scope="search")
    assert not refused.allowed
    assert (refused.wait, refused.retry_after, refused.retryable) == (None, None, False)
    assert remaining(calls.peek("acme")) == {"api": 10}


def test_without_any_limit(calls: Functions) -> None:
    decision = calls.take("acme")
    assert decision.allowed
    assert decision.outcomes == ()
    assert decision.headers() == {}


def test_an_unlimited_limit_is_not_there(calls: Functions) -> None:
    """Case 16."""
    make_plan("api unlimited", "search 5/d search")
    assert remaining(calls.take("acme", scope="search")) == {"search": 4}


def test_edits_act_on_the_next_take(calls: Functions) -> None:
    """Cases 17 and 19."""
    make_plan("api 10/d")
    calls.take("acme", cost=10)
    limit = PlanLimit.objects.get()
    limit.rate = "15/d"
    limit.save()
    assert remaining(calls.take("acme")) == {"api": 4}
    limit.rate = "4/d"
    limit.save()
    assert remaining(calls.peek("acme")) == {"api": 0}
    assert calls.take("acme").retry_after == 86400 // 4


def test_preflights_have_no_tenant(calls: Functions) -> None:
    """Rule 16."""
    make_plan("api 0/d")
    per_address("5/d")
    for_everyone("0/s")
    asked = of_user(method="options", **PREFLIGHT)
    assert remaining(calls.take(asked)) == {"address": 4}


def test_limits_per_address_count_for_requests_only(calls: Functions) -> None:
    """A key has no address."""
    make_plan("api 10/d")
    per_address("5/d")
    assert remaining(calls.take("acme")) == {"api": 9}
    assert remaining(calls.take(of_user())) == {"api": 9, "address": 4}


async def test_twins_of_a_request_on_the_loop() -> None:
    """Whose user is read in a thread, since that is a query."""
    await sync_to_async(make_plan)("api 10/d")
    user = await User.objects.acreate(username="ann")
    asked = request()
    from django.utils.functional import SimpleLazyObject

    asked.user = SimpleLazyObject(lambda: User.objects.get(pk=user.pk))  # type: ignore[assignment]
    assert (await limiter.atake(asked)).allowed
    assert remaining(await limiter.apeek(f"user:{user.pk}")) == {"api": 9}
