"""Random limits and histories, with a liking for the places where arithmetic goes wrong."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from ratelimits.algorithms import Operation
from ratelimits.limits import Decision, Limit
from ratelimits.rates import MAX_QUOTA, MAX_WINDOW, Rate
from ratelimits.validation import MAX_LOG

from .stores import DAY, SECOND

ALGORITHMS = ("token_bucket", "fixed_window", "sliding_log", "sliding_counter")
YEAR_2001 = 10**15
YEAR_2200 = 7_258_118_400 * SECOND
MONTH = 0
# Any two of these have a small common multiple, so that levels stay exact through all edits.
EXACT_WINDOWS = (1, 2, 3, 5, 10, 60, 300, 3600, 86400)


def examples(most: int) -> settings:
    """Settings for so many examples; RATELIMITS_TEST_EXAMPLES replaces the number."""
    return settings(
        max_examples=int(os.environ.get("RATELIMITS_TEST_EXAMPLES", most)),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


class Step(NamedTuple):
    """An operation, `later` microseconds after the one before.

    "fits" and "almost" are the wait told last, and a microsecond less. `edit` are limits that
    are in force from this step on.
    """

    operation: Operation
    cost: int
    later: int | str
    edit: tuple[Limit, ...] = ()


class History(NamedTuple):
    start: int
    limits: tuple[Limit, ...]
    steps: tuple[Step, ...]


quotas = st.one_of(
    st.integers(0, 12),
    st.sampled_from([100, 999, 9_999, MAX_LOG, 10**6, 10**9 + 7, MAX_QUOTA - 1, MAX_QUOTA]),
    st.integers(0, MAX_QUOTA),
)
windows = st.one_of(
    st.sampled_from([1, 2, 3, 7, 10, 60, 3600, 86400, 7 * 86400, 14 * 86400, MAX_WINDOW]),
    st.integers(1, MAX_WINDOW),
)


@st.composite
def limits(draw: st.DrawFn, name: str, algorithm: str, exact: bool = False) -> Limit:
    """A limit that the form would accept."""
    quota = draw(quotas)
    window = draw(st.sampled_from(EXACT_WINDOWS) if exact else windows)
    if algorithm == "sliding_log":
        quota %= MAX_LOG + 1
    if algorithm == "fixed_window" and draw(st.integers(0, 3)) == 0:
        window = MONTH
    burst = None
    if algorithm == "token_bucket" and quota and draw(st.booleans()):
        highest = min(MAX_QUOTA, MAX_WINDOW * quota // window)
        burst = draw(st.one_of(st.integers(1, min(20, highest)), st.integers(1, highest)))
    mode = draw(st.sampled_from(["enforce", "enforce", "enforce", "shadow"]))
    return Limit(name, Rate(quota, window), burst, algorithm=algorithm, mode=mode)


@st.composite
def edited(draw: st.DrawFn, limit: Limit, exact: bool = False) -> Limit:
    """The same limit with another rate; a little lower or higher, or anything."""
    if limit.rate.is_month or draw(st.booleans()):
        return draw(limits(limit.name, limit.algorithm, exact))
    most = MAX_LOG if limit.algorithm == "sliding_log" else MAX_QUOTA
    quota = min(most, max(0, limit.quota + draw(st.integers(-3, 5))))
    return replace(limit, rate=Rate(quota, limit.rate.window), burst=None)


def laters(limit: Limit) -> st.SearchStrategy[int | str]:
    """How long until the next step: mostly around what matters to one of the limits."""
    window = (limit.rate.window or 30 * 86400) * SECOND
    unit = window // max(1, limit.quota)
    near = st.integers(-2, 2)
    return st.one_of(
        st.just(0),
        st.sampled_from(["fits", "fits", "almost"]),
        st.integers(0, 3 * unit + 3),
        near.map(lambda by: window + by),
        st.integers(0, 3 * window),
        # Clocks that step back: a little, about as far as is waited out, and far.
        st.integers(-10 * SECOND, 0),
        near.map(lambda by: -10 * SECOND + by),
        st.integers(-2 * window, 0),
        st.integers(-400 * DAY, 400 * DAY),
    )


def costs(limit: Limit) -> st.SearchStrategy[int]:
    most = limit.capacity
    return st.one_of(
        st.integers(0, 3),
        st.integers(0, most),
        st.integers(-1, 1).map(lambda by: max(0, most + by)),
        st.just(most // 2),
        st.sampled_from([2 * most, 10**13, 2**60]),
    )


@st.composite
def histories(
    draw: st.DrawFn, most: int = 14, exact: bool = False, of: tuple[str, ...] = ALGORITHMS
) -> History:
    """One to three limits, and what happens to them."""
    kinds = draw(st.lists(st.sampled_from(of), min_size=1, max_size=3))
    current = [draw(limits(f"limit {i}", kind, exact)) for i, kind in enumerate(kinds)]
    beginning, steps = tuple(current), []
    for _ in range(draw(st.integers(1, most))):
        place = draw(st.integers(0, len(current) - 1))
        edit: tuple[Limit, ...] = ()
        if draw(st.integers(0, 6)) == 0:
            current[place] = draw(edited(current[place], exact))
            edit = (current[place],)
        operation = draw(st.sampled_from([Operation.TAKE] * 5 + list(Operation)))
        cost = draw(costs(current[place]))
        steps.append(Step(operation, cost, draw(laters(current[place])), edit))
    return History(draw(st.integers(YEAR_2001, YEAR_2200)), beginning, tuple(steps))


class Clock:
    """The time of each step, which may depend on the wait that was told before."""

    def __init__(self, start: int) -> None:
        self.now = start
        self.wait = 0

    def step(self, later: int | str) -> int:
        if later == "fits":
            later = self.wait
        elif later == "almost":
            later = self.wait - 1
        assert isinstance(later, int)
        # No store has to know times before the epoch.
        self.now = max(YEAR_2001 // 2, self.now + later)
        return self.now

    def hear(self, decision: Decision) -> None:
        self.wait = decision.wait_us or 0
