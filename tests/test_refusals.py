"""Who was refused is refused without asking again, and never wrongly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from ratelimits.algorithms import Operation
from ratelimits.decorators import ratelimit
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.stores import get_store
from ratelimits.stores.base import Answer, Group, Slot
from ratelimits.stores.guarded import GuardedStore
from tests.servers import RedisServer
from tests.settings import redis_caches

ALGORITHMS = ("token_bucket", "fixed_window", "sliding_log", "sliding_counter")
TAKE, REFUND = Operation.TAKE, Operation.REFUND


@pytest.fixture
def guarded(redis_server: RedisServer, settings: Any) -> Iterator[GuardedStore]:
    settings.RATELIMITS = {"STORE_TIMEOUT": 10, "LOCAL_REFUSALS": 60}
    settings.CACHES = redis_caches(redis_server.url)
    store = get_store()
    assert isinstance(store, GuardedStore)
    yield store


def group(rate: str = "2/h", algorithm: str = "token_bucket", **options: Any) -> Group:
    limits = [Limit("a", Rate.parse(rate), algorithm=algorithm), Limit("b", Rate.parse("100/h"))]
    return Group(tuple(Slot(limit, "caller") for limit in limits), **options)


def commands(server: RedisServer) -> int:
    stats: dict[str, Any] = server.client().info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))


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


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_never_wrongly(algorithm: str, guarded: GuardedStore, redis_server: RedisServer) -> None:
    """Each refusal without a command is one that the store would give, at that very moment."""
    asked = group("40/s", algorithm=algorithm)
    local, end = 0, time.monotonic() + 1
    while time.monotonic() < end:
        before = commands(redis_server)
        refused = not take(guarded, asked, 7).allowed
        if refused and commands(redis_server) == before:
            local += 1
            truth = guarded.store.run(Operation.PEEK, asked, [7, 7])
            # The look came later, and may find what flowed in since the refusal.
            if truth.allowed:
                assert truth.now > refused_until(guarded, asked)
    assert local > 0


def refused_until(guarded: GuardedStore, asked: Group) -> int:
    """By the store's clock, as it told with the last refusal."""
    from ratelimits.counting import outcomes_of
    from ratelimits.stores.refusals import Refusal

    refusal = asked.prepared[Refusal]
    assert isinstance(refusal, Refusal)
    outcomes = outcomes_of(TAKE, asked, [refusal.cost] * 2, refusal.answer)
    return refusal.answer.now + max(outcome.wait_us or 0 for outcome in outcomes) - 1


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
