"""Every store keeps the same books: after any history they hold the same, and say the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ratelimits.pacing.calls import SECOND, Action, Call, Reply, Told, Verdict, ask_of
from ratelimits.pacing.terms import Pace
from ratelimits.stores.base import Store
from ratelimits.stores.gates import Gates, Keys, Look, MemoryGates
from tests.conformance.conftest import lent, real_store, really_connecting  # noqa: F401
from tests.conformance.stores import NOON

_books = count()
RATES = [(1, 1), (10, 1), (3, 7), (100, 60), (1000, 3600), (600, 1)]


def keys() -> Keys:
    number = next(_books)
    return Keys(f"book{number}", f"share{number}", f"version{number}")


paces = st.builds(
    lambda ident, kind, rate, burst, per: Pace(
        str(ident), "", kind, rate[0], rate[1] * SECOND, rate[0] if kind == "window" else burst, per
    ),
    st.integers(1, 3),
    st.sampled_from(["bucket", "window"]),
    st.sampled_from(RATES),
    st.integers(1, 20),
    st.sampled_from(["credential", "tenant"]),
)
calls = st.fixed_dictionaries(
    {
        "pause": st.sampled_from([0, 1, 999, 30_000, 100_000, SECOND, 61 * SECOND, 3600 * SECOND]),
        "paces": st.lists(paces, max_size=3, unique_by=lambda pace: pace.ident),
        "units": st.sampled_from([1, 1, 1, 2, 5]),
        "action": st.sampled_from([Action.BOOK] * 6 + [Action.BLOCK, Action.LIFT]),
        "budget": st.sampled_from([0, 5 * SECOND, 20 * SECOND, 86400 * SECOND]),
        "guard": st.sampled_from([0, 10_000, 50_000, 2 * SECOND]),
        "again": st.booleans(),
        "told": st.lists(
            st.tuples(st.integers(0, SECOND), st.integers(0, 9), st.integers(0, 90 * SECOND)),
            max_size=2,
        ),
        "by": st.sampled_from(["", "429", "é"]),
    }
)


class Caller:
    """Asks as the gate does: for a place, and again when its turn or its moment has come."""

    def __init__(self, gates: Gates) -> None:
        self.gates = gates
        self.keys = keys()
        self.last = Reply(Verdict.LATER, 0)

    def do(self, drawn: dict[str, Any], now: int) -> Reply:
        asks = {"credential": [], "tenant": []}  # type: ignore[var-annotated]
        for pace in drawn["paces"]:
            asks[pace.per].append(ask_of(pace, drawn["units"], drawn["guard"]))
        told = tuple(
            Told(place, *numbers)
            for place, numbers in enumerate(drawn["told"][: len(asks["credential"])])
        )
        again = drawn["again"]
        call = Call(
            drawn["action"],
            tuple(asks["credential"]),
            tuple(asks["tenant"]),
            drawn["budget"],
            drawn["guard"],
            self.last.at if again and self.last.verdict is Verdict.GO else 0,
            again and self.last.verdict is Verdict.TURN,
            told,
            drawn["by"],
            drawn["by"],
            1,
        )
        self.last = self.gates.run(call, self.keys, "", now)
        return self.last

    def look(self) -> Look:
        return self.gates.look(self.keys)


def agree(gates: Gates, history: list[dict[str, Any]]) -> None:
    ours, theirs = Caller(MemoryGates()), Caller(gates)
    now = NOON
    for drawn in history:
        now += drawn["pause"]
        assert theirs.do(drawn, now) == ours.do(drawn, now)
        assert theirs.look()[1:] == ours.look()[1:]


def test_each_store_keeps_the_same_books(real_store: Store) -> None:  # noqa: F811
    @settings(max_examples=40)
    @given(history=st.lists(calls, min_size=1, max_size=12))
    def test(history: list[dict[str, Any]]) -> None:
        agree(real_store.gates, history)

    test()


def test_the_script_keeps_the_same_books(lent: Callable[[str], Store]) -> None:  # noqa: F811
    gates = lent("django-redis").gates

    @settings(max_examples=400)
    @given(history=st.lists(calls, min_size=1, max_size=25))
    def test(history: list[dict[str, Any]]) -> None:
        agree(gates, history)

    test()


@pytest.mark.parametrize("quota", [300, 2000])
def test_a_window_of_many(quota: int, lent: Callable[[str], Store]) -> None:  # noqa: F811
    """As long as each moment is kept, and where those of a slice become one."""
    pace = Pace("1", "", "window", quota, 10 * SECOND, quota)
    drawn = {
        "paces": [pace], "units": 1, "action": Action.BOOK, "budget": 60 * SECOND, "guard": 0,
        "again": False, "told": [], "by": "",
    }  # fmt: skip
    ours, theirs = Caller(MemoryGates()), Caller(lent("django-redis").gates)
    moments = []
    for turn in range(2 * quota):
        reply = ours.do(drawn, NOON + 1000 * turn)
        assert theirs.do(drawn, NOON + 1000 * turn) == reply
        moments.append(reply.at)
    assert theirs.look().book == ours.look().book
    assert len(ours.look().book["l1"]) < 16_000
    for first, last in zip(moments, moments[quota:], strict=False):
        assert last - first >= 10 * SECOND
