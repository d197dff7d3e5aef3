"""While the store is away, all processes together allow no more than the limit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from freezegun import freeze_time

from ratelimits.algorithms import Operation
from ratelimits.clock import microseconds
from ratelimits.counting import decide
from ratelimits.limits import Decision, Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Answer, Group, Slot
from ratelimits.stores.guarded import GuardedStore
from ratelimits.stores.missing import MissingStore
from ratelimits.stores.sharing import share_of
from ratelimits.telling import Taken, _low, lately

ALGORITHMS = ("token_bucket", "fixed_window", "sliding_log", "sliding_counter")


def away() -> GuardedStore:
    """A process whose store is away."""
    return GuardedStore(MissingStore("away"))


def take(store: GuardedStore, limit: Limit, cost: int = 1) -> Answer:
    return store.run(Operation.TAKE, Group((Slot(limit, "caller"),)), [cost])


def decision(store: GuardedStore, limit: Limit, cost: int = 1) -> Decision:
    group = Group((Slot(limit, "caller"),))
    answer = store.run(Operation.TAKE, group, [cost], microseconds())
    return decide(Operation.TAKE, group, [cost], cost, answer)


def admitted(limit: Limit, processes: list[GuardedStore], tries: int) -> int:
    return sum(take(process, limit).allowed for process in processes for _ in range(tries))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("workers", "expected"), [(4, 100), (3, 99), (1, 100), (None, 400)])
def test_together(algorithm: str, workers: int | None, expected: int, settings: Any) -> None:
    settings.RATELIMITS = {"WORKERS": workers}
    limit = Limit("n", Rate.parse("100/h"), algorithm=algorithm)
    processes = [away() for _ in range(4 if workers is None else workers)]
    with freeze_time("2026-07-01T12:00:00Z"):
        assert admitted(limit, processes, 150) == expected


def test_what_flows_in_is_shared_too(settings: Any) -> None:
    """10 per minute by four: 2 at once, and one each 24 seconds."""
    settings.RATELIMITS = {"WORKERS": 4}
    limit, process = Limit("n", Rate.parse("10/m")), away()
    with freeze_time("2026-07-01T12:00:00Z") as clock:
        assert admitted(limit, [process], 5) == 2
        clock.tick(23)
        assert not take(process, limit).allowed
        clock.tick(1)
        assert take(process, limit).allowed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_told_is_of_the_share(algorithm: str, settings: Any) -> None:
    """Or else who is refused would be told of units that are left, and to come back at once."""
    settings.RATELIMITS = {"WORKERS": 4}
    limit, process = Limit("n", Rate.parse("100/h"), algorithm=algorithm), away()
    with freeze_time("2026-07-01T12:00:00Z") as clock:
        left = [decision(process, limit).outcomes[0].remaining for _ in range(25)]
        assert left == list(reversed(range(25)))
        refused = decision(process, limit)
        assert "r=0" in refused.headers()["RateLimit"]
        assert refused.wait is not None
        clock.tick(refused.wait - timedelta(microseconds=1))
        assert not decision(process, limit).allowed
        clock.tick(timedelta(microseconds=1))
        assert decision(process, limit).allowed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_more_than_a_share_but_not_than_the_limit(algorithm: str, settings: Any) -> None:
    """The store, once it is back, may let it pass; but never what is too much for the limit."""
    settings.RATELIMITS = {"WORKERS": 4}
    limit, process = Limit("n", Rate.parse("100/h"), algorithm=algorithm), away()
    with freeze_time("2026-07-01T12:00:00Z"):
        for cost in (30, 100):
            refused = decision(process, limit, cost)
            assert not refused.allowed
            assert refused.retry_after
            assert refused.outcomes[0].reset_seconds <= refused.retry_after
        assert decision(process, limit, 101).retry_after is None


def test_nearly_used_up_is_a_tenth_of_the_share(settings: Any) -> None:
    settings.RATELIMITS = {"WORKERS": 50}
    process, told = away(), []
    group = Group((Slot(Limit("n", Rate.parse("1000/h")), "caller"),))
    lately.forget()
    with freeze_time("2026-07-01T12:00:00Z"):
        for left in reversed(range(20)):
            answer = process.run(Operation.TAKE, group, [1])
            decided = decide(Operation.TAKE, group, [1], 1, answer)
            told += [left] * len(list(_low(Taken(decided, group, shares=answer.shares))))
    assert told == [2]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_everybody_has_something_unless_there_is_nothing(algorithm: str) -> None:
    def shared(rate: str) -> Limit:
        return share_of(Slot(Limit("n", Rate.parse(rate), algorithm=algorithm), "c"), 500).limit

    assert shared("3/d").capacity == 1
    assert shared("0/d").capacity == 0


@pytest.mark.parametrize("rate", ["7/366d", "900/366d"])
def test_windows_that_can_grow_no_longer(rate: str) -> None:
    limit = Limit("n", Rate.parse(rate), burst=7)
    share = share_of(Slot(limit, "c"), 5).limit
    assert share.rate.window == limit.rate.window
    assert share.quota == max(1, limit.quota // 5)
    assert share.capacity == 1
