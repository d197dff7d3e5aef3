"""Cases from the field about the arithmetic of buckets, on every store."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from ratelimits.algorithms import ALGORITHMS as FUNCTIONS
from ratelimits.algorithms import State
from ratelimits.stores.base import Store

from .examples import ALGORITHMS
from .stores import DAY, NOON, SECOND, Calls, left, limit


def at(seconds: float) -> int:
    return NOON + round(seconds * SECOND)


def test_case_24_less_than_one_per_second(store: Store) -> None:
    calls = Calls(store, limit("1/10s"))
    assert calls.take().allowed
    refused = calls.take(at=at(5))
    assert refused.retry_after == 5
    assert calls.take(at=at(10)).allowed


def test_case_24_ten_a_day(store: Store) -> None:
    calls = Calls(store, limit("10/d"))
    assert [calls.take().allowed for _ in range(10)] == [True] * 10
    assert calls.take().retry_after == 8640


def test_case_31_the_clock_steps_back(store: Store) -> None:
    calls = Calls(store, limit("5/m"))
    calls.take(3)
    decision = calls.take(at=at(-11))
    assert decision.allowed
    assert left(decision)["limit"] >= 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("back", [0.001, 1, 9.999_999, 10, 10.000_001, 59, 3600, 86_400 * 400])
def test_case_31_nothing_is_minted_and_nobody_locked_out(
    back: float, algorithm: str, store: Store
) -> None:
    """Wherever the clock goes, what was used stays used."""
    calls = Calls(store, limit("5/m", algorithm=algorithm))
    assert calls.take(5).allowed
    refused = calls.take(at=at(-back))
    assert not refused.allowed
    assert refused.wait is not None
    # At most a window, and as long as the stored time is waited out.
    longest = {"token_bucket": 12 + 10, "sliding_counter": 120}.get(algorithm, 60 + 10)
    assert timedelta(0) < refused.wait <= timedelta(seconds=longest)


def test_case_31_late_messages(store: Store) -> None:
    """Times out of order, draining at each: no more than the burst and what came meanwhile."""
    calls, allowed = Calls(store, limit("5/s")), 0
    for moment in (100.0, 101.0, 100.2, 101.1):
        for _ in range(20):
            decision = calls.take(at=at(moment))
            allowed += decision.allowed
            assert decision.allowed or decision.retry_after == 1
    assert allowed <= 5 + 5 * 1.1


def test_case_32_idle_for_a_year(store: Store) -> None:
    calls = Calls(store, limit("10/m"))
    calls.take(10, NOON - 365 * DAY)
    assert [calls.take().allowed for _ in range(20)] == [True] * 10 + [False] * 10


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_case_32_a_stored_time_of_zero(algorithm: str, store: Store) -> None:
    calls = Calls(store, limit("10/m", algorithm=algorithm))
    calls.take(7, 0)
    assert [calls.take().allowed for _ in range(20)] == [True] * 10 + [False] * 10


def test_case_32_a_stored_time_of_zero_in_the_functions() -> None:
    bucket, terms = FUNCTIONS["token_bucket"], limit("10/m").terms
    state = bucket.settle(State(10, 0, 1, 0), terms, NOON)
    assert bucket.room(state, terms, NOON) == 10


def test_case_33_a_burst_below_the_rate(store: Store) -> None:
    calls = Calls(store, limit("3/s", burst=1))
    assert calls.take().allowed
    refused = calls.take()
    assert not refused.allowed
    assert refused.retry_after == 1
    assert refused.wait == timedelta(microseconds=333_334)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_case_34_more_than_there_can_be(algorithm: str, store: Store) -> None:
    calls = Calls(store, limit("10/m", algorithm=algorithm))
    refused = calls.take(16)
    assert not refused.allowed
    assert refused.wait is None
    assert refused.retry_after is None
    assert not refused.retryable
    assert refused.outcomes[0].never
    assert left(calls.take(1)) == {"limit": 9}


def test_case_34_nothing_at_all(store: Store) -> None:
    for algorithm in ALGORITHMS:
        calls = Calls(store, limit("0/m", algorithm=algorithm))
        refused = calls.take()
        assert not refused.allowed
        assert refused.retry_after is None
        assert calls.take(0).allowed


def test_case_35_costs(store: Store) -> None:
    calls = Calls(store, limit("10/m"))
    assert left(calls.take(6)) == {"limit": 4}
    refused = calls.take(5)
    assert not refused.allowed
    assert (refused.retry_after, left(refused)) == (6, {"limit": 4})
    assert left(calls.take(4)) == {"limit": 0}


def test_case_45_two_limits_of_one_caller(store: Store) -> None:
    calls = Calls(store, limit("3/m", "minute"), limit("30/d", "day"))
    assert left(calls.take()) == {"minute": 2, "day": 29}
    assert calls.take().allowed
    assert calls.take().allowed
    refused = calls.take()
    assert [outcome.name for outcome in refused.violated] == ["minute"]
    assert left(refused) == {"minute": 0, "day": 27}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_case_46_peeks(algorithm: str, store: Store) -> None:
    calls = Calls(store, limit("1/h", algorithm=algorithm))
    free = calls.peek()
    assert free.allowed
    assert left(free) == {"limit": 1}
    taken = calls.take()
    assert taken.allowed
    assert left(taken) == {"limit": 0}
    assert not calls.peek().allowed
    assert not calls.take().allowed


def test_charges_and_refunds(store: Store) -> None:
    """A charge leaves no debt, a refund no credit."""
    for algorithm in ALGORITHMS:
        calls = Calls(store, limit("10/m", algorithm=algorithm))
        assert calls.take(8).allowed
        assert left(calls.charge(50)) == {"limit": 0}
        assert left(calls.refund(3)) == {"limit": 3}
        assert left(calls.refund(50)) == {"limit": 10}
        assert calls.take(10).allowed
        assert not calls.take().allowed


def test_a_window_that_has_ended_is_not_credited(store: Store) -> None:
    for algorithm in ("fixed_window", "sliding_log"):
        calls = Calls(store, limit("10/m", algorithm=algorithm))
        calls.take(10)
        assert left(calls.refund(5, at(60))) == {"limit": 10}
        assert not calls.take(11, at(60)).allowed
    counter = Calls(store, limit("10/m", algorithm="sliding_counter"))
    counter.take(10)
    # Half of the last window's ten still weigh.
    assert left(counter.refund(5, at(90))) == {"limit": 5}


def test_raised_and_lowered(store: Store) -> None:
    """What was used stays used: cases 17 and 19 without the wait for anyone's cache."""
    calls = Calls(store, limit("10/h"))
    assert calls.take(10).allowed
    calls.edit(limit("15/h"))
    assert left(calls.peek()) == {"limit": 5}
    calls.edit(limit("4/h"))
    refused = calls.take()
    assert left(refused) == {"limit": 0}
    assert refused.retry_after == 900


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2024-02-29T23:59:59.999999", "2024-03-01"),
        ("2026-07-01T00:00:00", "2026-08-01"),
        ("2026-12-31T12:00:00", "2027-01-01"),
        ("2100-02-28T12:00:00", "2100-03-01"),
        ("2100-03-01T00:00:00", "2100-04-01"),
    ],
)
def test_calendar_months(now: str, end: str, store: Store) -> None:
    date, until = (datetime.fromisoformat(text + "+00:00") for text in (now, end + "T00:00:00"))
    time = (date - datetime.fromtimestamp(0, timezone.utc)) // timedelta(microseconds=1)
    calls = Calls(store, limit("3/month", algorithm="fixed_window"))
    assert calls.take(3, time).allowed
    assert calls.take(1, time).wait == until - date
    assert calls.take(3, time + (until - date) // timedelta(microseconds=1)).allowed
