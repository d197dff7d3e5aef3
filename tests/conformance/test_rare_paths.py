"""Paths of the script that random histories seldom take, against the pure functions."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from ratelimits.algorithms import Operation, State
from ratelimits.limits import Limit
from ratelimits.rates import MAX_QUOTA, MAX_WINDOW, Rate
from ratelimits.stores.base import Store
from ratelimits.stores.redis import RedisStore

from .examples import examples
from .stores import NOON, SECOND, Calls, PureStore, limit


class Both:
    """One caller of the script and one of the pure functions, who must hear the same."""

    def __init__(self, redis: Store, *limits: Limit) -> None:
        self.callers = [Calls(redis, *limits), Calls(PureStore(), *limits)]

    def edit(self, limit: Limit) -> None:
        for calls in self.callers:
            calls.edit(limit)

    def do(self, operation: Operation, cost: int, at: int) -> tuple[bool, State]:
        """Whether it passed, and the state of the one limit."""
        theirs, ours = (calls.answer(operation, cost, at) for calls in self.callers)
        assert theirs == ours
        (state,) = ours.states
        assert state is not None
        return ours.allowed, state


rates = st.builds(
    Rate, st.one_of(st.integers(1, 1000), st.integers(1, MAX_QUOTA)), st.integers(1, MAX_WINDOW)
)


@examples(80)
@given(
    used=st.integers(1, MAX_QUOTA),
    edits=st.lists(st.tuples(rates, st.integers(0, 10 * SECOND)), min_size=2, max_size=8),
)
@example(used=5, edits=[(Rate(1, 2), 0), (Rate(1, 2), SECOND), (Rate(1, 3), 3 * SECOND // 2)])
def test_rates_with_nothing_in_common(
    used: int, edits: list[tuple[Rate, int]], redis_only: RedisStore
) -> None:
    """An edited rate may need a finer unit than there is, or one that is coarser again."""
    both, now = Both(redis_only, limit("1/s")), NOON
    for rate, later in edits:
        # As much as may be: it is full again after 366 days.
        assert rate.quota is not None
        burst = min(MAX_QUOTA, MAX_WINDOW * rate.quota // rate.window)
        both.edit(Limit("limit", rate, burst))
        now += later
        both.do(Operation.TAKE, min(used, burst), now)
        used = 1


def long_log(redis: Store) -> Both:
    """A log with a hit in each of 700 milliseconds."""
    both = Both(redis, limit("1000/m", algorithm="sliding_log"))
    for number in range(700):
        both.do(Operation.TAKE, 1, NOON + number * 1000)
    return both


def test_a_long_log(redis_only: RedisStore) -> None:
    """The script reads a log in pieces."""
    both, now = long_log(redis_only), NOON + 700_000
    for cost, hit in [(301, 0), (600, 299), (999, 698), (1000, 699)]:
        _, state = both.do(Operation.PEEK, cost, now)
        assert state.part == NOON + hit * 1000 + 60 * SECOND
    later = NOON + 60 * SECOND + 449_500
    assert both.do(Operation.TAKE, 0, later)[1].used == 250
    assert both.do(Operation.REFUND, 200, later)[1].used == 50
    assert both.do(Operation.TAKE, 950, later)[1].used == 1000


def test_a_long_log_after_the_clock_was_set_back(redis_only: RedisStore) -> None:
    """All hits are gone through: at first those of the future, then those out of order."""
    both = long_log(redis_only)
    for at in (NOON - 3600 * SECOND, NOON - 3605 * SECOND, NOON - 3604 * SECOND):
        for cost in (1, 280, 600, 999):
            both.do(Operation.PEEK, cost, at)
        both.do(Operation.TAKE, 20, at)
    assert both.do(Operation.TAKE, 0, NOON - 3540 * SECOND)[1].used == 0


def test_a_log_of_the_largest_quota(redis_only: RedisStore) -> None:
    both = Both(redis_only, limit("10000/d", algorithm="sliding_log"))
    assert both.do(Operation.TAKE, 10_000, NOON)[0]
    assert not both.do(Operation.TAKE, 1, NOON)[0]
    assert both.do(Operation.REFUND, 9_999, NOON)[1].used == 1
    assert both.do(Operation.TAKE, 9_999, NOON + 1)[0]
