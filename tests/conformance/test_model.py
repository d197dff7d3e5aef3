"""The pure functions against a model in exact fractions that shares no code with them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratelimits.algorithms import Operation, State, Terms, token_bucket
from ratelimits.limits import Decision
from ratelimits.rates import MAX_WINDOW

from .examples import ALGORITHMS, Clock, History, examples, histories
from .model import Model, Told, as_time, window_end, window_of
from .stores import DAY, NOON, SECOND, Calls, PureStore
from .test_vectors import histories as known_histories
from .test_vectors import limits_of


def told(decision: Decision) -> Told:
    """A decision in the model's words."""
    return Told(
        decision.allowed,
        tuple(outcome.name for outcome in decision.violated),
        tuple(outcome.wait_us for outcome in decision.violated),
        tuple(outcome.remaining for outcome in decision.outcomes),
    )


def agree(history: History) -> None:
    clock, model = Clock(history.start), Model(history.limits)
    calls = Calls(PureStore(), *history.limits)
    for step in history.steps:
        now = clock.step(step.later)
        calls.edit(*step.edit)
        model.edit(step.edit)
        decision = calls.do(step.operation, step.cost, now)
        assert told(decision) == model.do(step.operation, step.cost, now)
        clock.hear(decision)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@examples(100)
@given(data=st.data())
def test_each_algorithm(algorithm: str, data: st.DataObject) -> None:
    agree(data.draw(histories(exact=True, of=(algorithm,))))


@examples(100)
@given(history=histories(exact=True))
def test_algorithms_together(history: History) -> None:
    agree(history)


def test_the_model_knows_the_histories() -> None:
    """The two models were written apart, from the same rules."""
    for history in known_histories():
        model = Model(limits_of(history["limits"]))
        for step in history["steps"]:
            if step["op"] == "edit":
                model.edit(limits_of(step["limits"]))
                continue
            answer = model.do(Operation[step["op"].upper()], step["cost"], step["at_us"])
            remaining = dict(zip(model.counters, answer.remaining, strict=True))
            assert remaining == step["expect"]["remaining"]
            if "allowed" in step["expect"]:
                assert answer.allowed == step["expect"]["allowed"]
                assert list(answer.violated) == step["expect"]["violated"]


@examples(200)
@given(
    used=st.integers(0, 10**12),
    rates=st.lists(
        st.tuples(st.integers(1, 10**12), st.integers(1, MAX_WINDOW)), min_size=2, max_size=8
    ),
    gaps=st.lists(st.integers(0, 10 * SECOND), min_size=8, max_size=8),
)
def test_edits_of_a_rate_round_up_by_less_than_a_unit_each(
    used: int, rates: list[tuple[int, int]], gaps: list[int]
) -> None:
    """No rate of a window divides that of another: the level may be rounded, in one direction."""
    now, burst, state = NOON, 10**12, State(used, 0, 1, NOON)
    exact, slack = Fraction(used), Fraction(0)
    for (quota, window), gap in zip(rates, gaps, strict=False):
        now += gap
        terms = Terms(quota, burst, window * SECOND)
        state = token_bucket.settle(state, terms, now)
        exact = max(Fraction(0), exact - Fraction(*token_bucket.rate(terms)) * gap)
        slack += Fraction(1, token_bucket.rate(terms)[1])
        level = state.used + Fraction(state.part, state.unit)
        assert exact <= level <= min(exact + slack, Fraction(burst))


@pytest.mark.parametrize(
    ("now", "start", "end"),
    [
        ("2026-07-01 12:00:00", "2026-07-01", "2026-08-01"),
        ("2024-02-29 23:59:59.999999", "2024-02-01", "2024-03-01"),
        ("2024-03-01 00:00:00", "2024-03-01", "2024-04-01"),
        ("2100-02-28 23:00:00", "2100-02-01", "2100-03-01"),
        ("2000-02-29 00:00:00", "2000-02-01", "2000-03-01"),
        ("2025-12-31 23:59:59.999999", "2025-12-01", "2026-01-01"),
    ],
)
def test_months(now: str, start: str, end: str) -> None:
    from datetime import datetime

    from ratelimits.algorithms.windows import bounds

    def at(text: str) -> int:
        return as_time(datetime.fromisoformat(text + "+00:00"))

    assert bounds(at(now), 0) == (at(start + " 00:00:00"), at(end + " 00:00:00"))


@examples(300)
@given(now=st.integers(0, 200 * 366 * DAY), window=st.sampled_from([0, 1, 7, 14, 366]))
def test_windows(now: int, window: int) -> None:
    """As the calendar of the standard library has them."""
    from ratelimits.algorithms.windows import bounds

    start = window_of(now, window * DAY)
    assert bounds(now, window * DAY) == (start, window_end(start, window * DAY))
    assert start <= now < window_end(start, window * DAY)
