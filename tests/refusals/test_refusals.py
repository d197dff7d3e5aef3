"""Who was refused is refused without asking again, and never wrongly."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from ratelimits.algorithms import Operation
from ratelimits.decorators import ratelimit
from ratelimits.exceptions import StoreBusy
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.stores import refusals
from ratelimits.stores.base import Answer, Group, Slot
from ratelimits.stores.guarded import GuardedStore
from ratelimits.stores.refusals import Refusal, monotonic
from tests.refusals.watching import commands
from tests.servers import RedisServer

ALGORITHMS = ("token_bucket", "fixed_window", "sliding_log", "sliding_counter")
TAKE, REFUND = Operation.TAKE, Operation.REFUND


def group(rate: str = "2/h", algorithm: str = "token_bucket", **options: Any) -> Group:
    limits = [Limit("a", Rate.parse(rate), algorithm=algorithm), Limit("b", Rate.parse("100/h"))]
    return Group(tuple(Slot(limit, "caller") for limit in limits), **options)


def take(store: GuardedStore, asked: Group, cost: int = 1) -> Answer:
    return store.run(TAKE, asked, [cost] * len(asked.slots))


def emptied(store: GuardedStore, asked: Group) -> Answer:
    take(store, asked, 2)
    return take(store, asked)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_storm_costs_no_command(
    algorithm: str, guarded: GuardedStore, redis_server: RedisServer
) -> None:
    asked = group(algorithm=algorithm)
    first = emptied(guarded, asked)
    before = commands(redis_server)
    again = [take(guarded, asked) for _ in range(1000)]
    assert commands(redis_server) == before
    assert not any(answer.allowed for answer in again)
    assert {answer.states for answer in again} == {first.states}
    assert first.now <= again[0].now <= again[-1].now


def test_other_terms_end_a_refusal_also_when_another_one_is_over(
    guarded: GuardedStore, settings: Any
) -> None:
    """A lowered burst leaves less in use, by however many groups its bucket has refused."""
    slot, lowered = (Slot(Limit("a", Rate.parse(rate)), "caller") for rate in ("6/h", "3/h"))
    brief, lasting = Group((slot,)), Group((slot, Slot(Limit("b", Rate.parse("9/h")), "caller")))
    guarded.run(TAKE, brief, [6])
    for group, age in ((brief, 0.1), (lasting, 60)):
        settings.RATELIMITS = {**settings.RATELIMITS, "LOCAL_REFUSALS": age}
        assert not take(guarded, group).allowed
    time.sleep(0.1)
    # Another refusal drops what is over.
    assert not take(guarded, Group((Slot(Limit("c", Rate.parse("0/h")), "other"),))).allowed
    assert take(guarded, lasting).local
    take(guarded, Group((lowered,)))
    assert take(guarded, lasting).allowed


def test_the_time_goes_on_but_never_ahead_of_the_stores(guarded: GuardedStore) -> None:
    """So that the wait that is told grows shorter, and is never too short."""
    asked = group()
    first = emptied(guarded, asked)
    time.sleep(0.02)
    local = take(guarded, asked)
    assert local.now >= first.now + 20_000
    assert local.now <= guarded.store.run(Operation.PEEK, asked, [1, 1]).now


@pytest.mark.parametrize("algorithm", ["token_bucket", "fixed_window", "sliding_counter"])
def test_a_larger_cost_is_refused_too(
    algorithm: str, guarded: GuardedStore, redis_server: RedisServer
) -> None:
    asked = group(algorithm=algorithm)
    emptied(guarded, asked)
    before = commands(redis_server)
    larger = take(guarded, asked, 99)
    assert commands(redis_server) == before
    assert larger.fitted == guarded.store.run(Operation.PEEK, asked, [99, 99]).fitted


def test_what_may_pass_is_asked(guarded: GuardedStore) -> None:
    """A smaller cost, another caller, other versions of the limits, a look."""
    asked = group("3/h")
    take(guarded, asked, 1)
    assert not take(guarded, asked, 3).allowed
    assert take(guarded, asked, 2).allowed
    assert not take(guarded, asked).allowed
    assert take(guarded, group("9/h")).allowed
    assert guarded.run(Operation.PEEK, asked, [0, 0]).allowed


def test_units_that_come_back_are_found(guarded: GuardedStore) -> None:
    asked = group()
    emptied(guarded, asked)
    guarded.run(REFUND, asked, [1, 1])
    assert take(guarded, asked).allowed
    assert not take(guarded, asked).allowed
    guarded.reset(asked)
    assert take(guarded, asked).allowed


@pytest.mark.parametrize("operation", [Operation.PEEK, Operation.CHARGE])
def test_only_takes_are_answered_and_learnt_from(
    operation: Operation, guarded: GuardedStore, redis_server: RedisServer
) -> None:
    asked = group()
    take(guarded, asked, 2)
    before = commands(redis_server)
    for _ in range(3):
        guarded.run(operation, asked, [1, 1])
    assert not take(guarded, asked).allowed
    for _ in range(3):
        guarded.run(operation, asked, [1, 1])
    assert commands(redis_server) == before + 7


def test_not_by_a_clock_of_the_callers(guarded: GuardedStore, redis_server: RedisServer) -> None:
    """It may be frozen, or ahead."""
    asked, now = group(), 1_800_000_000_000_000
    before = commands(redis_server)
    answers = [guarded.run(TAKE, asked, [2, 2], now + i) for i in range(3)]
    assert [answer.allowed for answer in answers] == [True, False, False]
    assert commands(redis_server) == before + 3


def test_the_smaller_cost_is_remembered(guarded: GuardedStore, redis_server: RedisServer) -> None:
    """In whichever order the answers arrive."""
    asked = group("3/h")
    take(guarded, asked, 1)
    refused = guarded.store.run(TAKE, asked, [3, 3])
    take(guarded, asked, 2)
    assert not take(guarded, asked).allowed
    assert guarded.refusals is not None
    guarded.refusals.learn(asked, [3, 3], refused, monotonic())
    before = commands(redis_server)
    assert not any(take(guarded, asked, cost).allowed for cost in (1, 2, 3, 4))
    assert commands(redis_server) == before


def test_costs_of_a_log_are_remembered_one_by_one(
    guarded: GuardedStore, redis_server: RedisServer
) -> None:
    asked = group(algorithm="sliding_log")
    take(guarded, asked, 2)
    before = commands(redis_server)
    for _ in range(5):
        assert not any(take(guarded, asked, cost).allowed for cost in (1, 2))
    assert commands(redis_server) == before + 2


def test_what_was_taken_before_may_cost_nothing_more(
    guarded: GuardedStore, redis_server: RedisServer
) -> None:
    """The door before took of the second limit, so that only the first one is asked."""
    asked = group()
    take(guarded, asked, 2)
    before = commands(redis_server)
    answers = [guarded.run(TAKE, asked, [1, 0]) for _ in range(5)]
    assert not any(answer.allowed for answer in answers)
    assert {answer.fitted for answer in answers} == {(False, True)}
    assert commands(redis_server) == before + 1
    assert guarded.run(TAKE, asked, [0, 1]).allowed


def of_two() -> Group:
    """A limit of the caller's own, and one of its address."""
    limits = [Limit("a", Rate.parse("2/h")), Limit("b", Rate.parse("9/h"))]
    return Group(tuple(map(Slot, limits, ("caller", "address"))))


def test_what_others_get_back_ends_nothing(
    guarded: GuardedStore, redis_server: RedisServer
) -> None:
    asked = of_two()
    emptied(guarded, asked)
    others = Group((Slot(asked.slots[1].limit, "other address"), asked.slots[1]))
    before = commands(redis_server)
    guarded.run(REFUND, others, [1, 1])
    guarded.reset(Group(()), ["other caller"])
    assert not take(guarded, asked).allowed
    assert commands(redis_server) == before + 1
    guarded.reset(Group(()), ["caller"])
    assert take(guarded, asked).allowed


def test_a_larger_cost_is_refused_by_those_who_refuse_it(guarded: GuardedStore) -> None:
    """Not by a limit that had no room for it when it was asked, but has some by now."""
    asked = of_two()
    take(guarded, asked, 2)
    guarded.run(TAKE, asked, [0, 6])
    assert guarded.run(TAKE, asked, [1, 0]).fitted == (False, True)
    assert guarded.run(TAKE, asked, [1, 2]).fitted == (False, False)
    guarded.run(REFUND, Group(asked.slots[1:]), [1])
    answer = guarded.run(TAKE, asked, [1, 2])
    assert (answer.fitted, answer.local) == ((False, True), False)


def test_what_is_heard_while_units_come_back_is_void(guarded: GuardedStore) -> None:
    """The refusal may be from before the refund, though it arrives after it was asked for."""
    asked = group()
    emptied(guarded, asked)
    run = guarded.store.run

    def overtaken(operation: Operation, *args: Any) -> Answer:
        if operation is REFUND:
            take(guarded, asked)
        return run(operation, *args)

    guarded.store.run = overtaken  # type: ignore[method-assign,assignment]
    try:
        guarded.run(REFUND, asked, [1, 1])
    finally:
        guarded.store.run = run  # type: ignore[method-assign]
    assert take(guarded, asked).allowed


def test_a_refund_that_may_have_been_done_ends_it(
    guarded: GuardedStore, redis_server: RedisServer
) -> None:
    """It was done, and its answer lost."""
    asked = group()
    emptied(guarded, asked)
    run = guarded.store.run

    def lost(operation: Operation, *args: Any) -> Answer:
        run(operation, *args)
        raise StoreBusy("too late")

    guarded.store.run = lost  # type: ignore[method-assign,assignment]
    try:
        guarded.run(REFUND, asked, [1, 1])
    finally:
        guarded.store.run = run  # type: ignore[method-assign]
    assert take(guarded, asked).allowed


def test_memory_is_bounded(guarded: GuardedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of what was given back; then all that is known ends."""
    monkeypatch.setattr(refusals, "MOST", 50)
    limit = Limit("a", Rate.parse("1/h"))
    groups = [Group((Slot(limit, f"caller {number}"),)) for number in range(200)]
    for asked in groups:
        assert take(guarded, asked).allowed
        assert not take(guarded, asked).allowed
    assert guarded.refusals is not None
    assert len(guarded.refusals) == 50
    assert sum(Refusal in asked.prepared for asked in groups) == 50
    for asked in groups[:51]:
        guarded.run(REFUND, asked, [1])
    assert len(guarded.refusals) == 50
    for asked in groups[:51]:
        assert take(guarded, asked).allowed


def test_age_and_off(guarded: GuardedStore, redis_server: RedisServer, settings: Any) -> None:
    settings.RATELIMITS = {**settings.RATELIMITS, "LOCAL_REFUSALS": 0}
    asked = group()
    emptied(guarded, asked)
    before = commands(redis_server)
    take(guarded, asked)
    assert commands(redis_server) == before + 1
    settings.RATELIMITS = {**settings.RATELIMITS, "LOCAL_REFUSALS": 0.05}
    take(guarded, asked)
    take(guarded, asked)
    assert commands(redis_server) == before + 2
    time.sleep(0.06)
    take(guarded, asked)
    assert commands(redis_server) == before + 3


def test_a_storm_at_a_view_with_a_limit_in_code(
    guarded: GuardedStore, redis_server: RedisServer
) -> None:
    view = ratelimit("1/h", by="ip")(lambda request: HttpResponse())
    request = RequestFactory().get
    assert view(request("/")).status_code == 200
    assert view(request("/")).status_code == 429
    before = commands(redis_server)
    assert {view(request("/")).status_code for _ in range(100)} == {429}
    assert commands(redis_server) == before


def test_limits_above_each_other_at_a_view(
    guarded: GuardedStore, redis_server: RedisServer
) -> None:
    """They are one take, with a cost for each."""
    decorators = ratelimit("2/h", by="ip", cost=2), ratelimit("9/h", by="ip", name="other")
    view = decorators[0](decorators[1](lambda request: HttpResponse()))
    request = RequestFactory().get
    assert [view(request("/")).status_code for _ in range(2)] == [200, 429]
    before = commands(redis_server)
    assert {view(request("/")).status_code for _ in range(100)} == {429}
    assert commands(redis_server) == before
