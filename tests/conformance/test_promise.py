"""A wait is a promise: exactly then the same take passes, and not a microsecond earlier."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratelimits.algorithms import Operation
from ratelimits.limits import Decision
from ratelimits.rates import MAX_WINDOW
from ratelimits.stores.base import Store

from .examples import ALGORITHMS, Clock, History, Step, examples, histories
from .stores import NOON, SECOND, Calls, limit

FOREVER = (MAX_WINDOW + 1) * SECOND


def hopeless(decision: Decision) -> bool:
    """Whether a limit is violated that no cost like this one ever fits."""
    return any(
        decision.cost > outcome.limit.capacity or outcome.limit.quota == 0
        for outcome in decision.violated
    )


def keeps_its_promise(calls: Calls, history: History, cost: int, tried: bool) -> None:
    """Play a history, take, and take again when told. `tried`: somebody did not wait."""
    clock = Clock(history.start)
    for step in history.steps:
        calls.edit(*step.edit)
        clock.hear(calls.do(step.operation, step.cost, clock.step(step.later)))
    decision = calls.take(cost, clock.now)
    if decision.allowed:
        return
    if decision.wait_us is None:
        assert hopeless(decision)
        assert not calls.take(cost, clock.now + FOREVER).allowed
        return
    assert decision.wait_us > 0
    assert decision.wait == timedelta(microseconds=decision.wait_us)
    again = calls.take if tried else calls.peek
    early = again(cost, clock.now + decision.wait_us - 1)
    assert not early.allowed
    assert early.wait_us == 1
    assert calls.take(cost, clock.now + decision.wait_us).allowed


def used_up(history: History) -> History:
    """With all used up before the last step, so that most takes after it have to wait."""
    steps = (*history.steps[:-1], Step(Operation.CHARGE, 2**60, 0), history.steps[-1])
    return history._replace(steps=steps)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@examples(30)
@given(data=st.data(), cost=st.integers(1, 5), full=st.booleans(), tried=st.booleans())
def test_of_each_algorithm(
    algorithm: str,
    data: st.DataObject,
    cost: int,
    full: bool,
    tried: bool,
    memory_and_redis: dict[str, Store],
) -> None:
    history = data.draw(histories(most=8, of=(algorithm,)))
    history = used_up(history) if full else history
    for store in memory_and_redis.values():
        keeps_its_promise(Calls(store, *history.limits), history, cost, tried)


@examples(80)
@given(history=histories(most=8), share=st.fractions(0, 1), tried=st.booleans())
def test_of_several_limits(
    history: History, share: float, tried: bool, all_kinds: dict[str, Store]
) -> None:
    cost = max(1, int(min(limit.capacity for limit in history.limits) * share))
    for store in all_kinds.values():
        keeps_its_promise(Calls(store, *history.limits), used_up(history), cost, tried)


def test_of_a_lowered_burst(store: Store) -> None:
    """What was used above the new burst is forgiven, so the wait is of the new rate."""
    calls = Calls(store, limit("10/m"))
    assert calls.take(10).allowed
    calls.edit(limit("60/m", burst=4))
    assert calls.take().wait == timedelta(seconds=1)
    assert not calls.take(at=NOON + SECOND - 1).allowed
    assert calls.take(at=NOON + SECOND).allowed


def test_of_a_clock_set_back_an_hour(store: Store) -> None:
    calls = Calls(store, limit("10/m"))
    assert calls.take(10).allowed
    back = NOON - 3600 * SECOND
    assert calls.take(at=back).wait == timedelta(seconds=6)
    assert calls.take(at=back + 6 * SECOND).allowed


def test_of_a_clock_that_steps_back_a_little(store: Store) -> None:
    """Nothing drains until the stored time, and the wait says so."""
    calls = Calls(store, limit("10/m"))
    assert calls.take(10).allowed
    back = NOON - 4 * SECOND
    assert calls.take(at=back).wait == timedelta(seconds=10)
    assert not calls.take(at=back + 10 * SECOND - 1).allowed
    assert calls.take(at=back + 10 * SECOND).allowed


def test_refused_calls_do_not_push_it_away(store: Store) -> None:
    for algorithm in ALGORITHMS:
        calls = Calls(store, limit("10/m", algorithm=algorithm))
        assert calls.take(10).allowed
        first = calls.take()
        assert first.wait_us is not None
        for second in range(1, first.wait_us // SECOND):
            later = calls.take(at=NOON + second * SECOND)
            assert later.wait_us == first.wait_us - second * SECOND
        assert calls.take(at=NOON + first.wait_us).allowed


def test_of_retry_after(store: Store) -> None:
    """Rounded up to whole seconds, and never 0."""
    for rate, seconds in [("3/s", 1), ("1/10s", 10), ("7/m", 9), ("10/d", 8640)]:
        calls = Calls(store, limit(rate))
        calls.charge(10**6)
        refused = calls.take()
        assert refused.retry_after == seconds
        assert calls.take(at=NOON + seconds * SECOND).allowed
