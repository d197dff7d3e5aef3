"""How much a limit lets pass in a minute or an hour of the clock: never less than it does."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratelimits.algorithms import ALGORITHMS, Operation
from ratelimits.allowing import most_in, sold_in
from ratelimits.limits import SECOND, Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Group, Slot
from ratelimits.stores.memory import MemoryStore


def limit(rate: str, **more: Any) -> Limit:
    return Limit("n", Rate.parse(rate), **more)


@pytest.mark.parametrize(
    ("of", "seconds", "right"),
    [
        (limit("60/m"), 60, 120),
        (limit("60/m", burst=5), 60, 65),
        (limit("60/m", burst=5), 3600, 3605),
        (limit("60/m", algorithm="fixed_window"), 60, 60),
        (limit("60/m", algorithm="fixed_window"), 3600, 3600),
        (limit("1000/d", algorithm="sliding_log"), 3600, 1000),
        (limit("7/7s", algorithm="fixed_window"), 60, 70),
        (limit("1000/month", algorithm="fixed_window"), 3600, 1000),
        (limit("unlimited"), 60, None),
        (limit("0/m"), 60, 0),
    ],
)
def test_most(of: Limit, seconds: int, right: int | None) -> None:
    assert most_in(of, seconds) == right


@given(
    st.integers(1, 20),
    st.sampled_from([1, 7, 20, 30, 60, 90, 120]),
    st.sampled_from(list(ALGORITHMS)),
    st.none() | st.integers(1, 30),
    st.lists(st.tuples(st.integers(0, 20 * SECOND), st.integers(1, 9)), max_size=60),
)
def test_nobody_gets_more(
    quota: int, window: int, algorithm: str, burst: int | None, steps: list[tuple[int, int]]
) -> None:
    burst = burst if algorithm == "token_bucket" else None
    one = Limit("n", Rate(quota, window), burst, algorithm=algorithm)
    group, store, now = Group((Slot(one, "somebody"),)), MemoryStore(), 10**15
    passed: dict[int, int] = {}
    for pause, cost in steps:
        now += pause
        if store.run(Operation.TAKE, group, [cost], now).allowed:
            minute = now // (60 * SECOND)
            passed[minute] = passed.get(minute, 0) + cost
    most = most_in(one, 60)
    assert most is not None
    assert max(passed.values(), default=0) <= most


@pytest.mark.parametrize(
    ("limits", "seconds", "right"),
    [
        (["60/m"], 1, 1),
        (["60/m"], 90, 90),
        # The second one is no speed, until the first would use it up.
        (["600/m", "1000/d"], 1, 10),
        (["600/m", "1000/d"], 60, 600),
        (["600/m", "1000/d"], 3600, 1000),
        (["600/m", "1000/d"], 2 * 86400, 2000),
        (["600/m", "unlimited"], 60, 600),
        (["unlimited"], 60, None),
        ([], 60, None),
        (["3000/month"], 86400, 100),
    ],
)
def test_what_is_sold(limits: list[str], seconds: int, right: int | None) -> None:
    sold = [limit(rate, burst=500 if rate == "60/m" else None) for rate in limits]
    assert sold_in(sold, Fraction(seconds)) == right
