"""What a process's own counts owe the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from freezegun import freeze_time

from ratelimits.algorithms import Operation
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Answer, Group, Slot
from ratelimits.stores.levels import Levels
from ratelimits.stores.local import LocalStore
from tests.failing import (
    FailingStore,
)

TAKE = Operation.TAKE


@pytest.fixture(autouse=True)
def _at_noon() -> Iterator[None]:
    with freeze_time("2026-07-01T12:00:00Z"):
        yield


def slot(rate: str = "10/h", subject: str = "caller", **options: Any) -> Slot:
    return Slot(Limit("n", Rate.parse(rate), **options), subject)


def count(local: LocalStore, asked: Slot, cost: int = 1, now: int = 0) -> Answer:
    return local.count(TAKE, Group((asked,)), [cost], now, 1, [False], False)


def test_what_was_charged_stays_counted_until_the_store_is_asked() -> None:
    local = LocalStore(Levels())
    assert count(local, slot(), 10).allowed
    assert [local.bill("caller", 0, last=False).costs for _ in range(2)] == [[10], []]
    assert not count(local, slot()).allowed
    assert local.bill("caller", 0, last=True).costs == []
    assert local.subjects() == []


def test_what_is_heard_meanwhile_counts() -> None:
    """A process that can't ask for one caller hears of it from calls that go well."""
    levels = Levels()
    local, store, asked = LocalStore(levels), FailingStore(), Group((slot(),))
    assert count(local, slot(), 3, now=1).allowed
    levels.learn(asked, store.run(TAKE, asked, [5], 2), 0)
    assert not count(local, slot(), 3, now=3).allowed
    assert count(local, slot(), 2, now=3).allowed
    assert local.bill("caller", 3, last=False).costs == [5]


def test_memory_stays_bounded_under_a_flood() -> None:
    """Used buckets keep what is used; newcomers share one, which owes nothing to anybody."""
    local = LocalStore(Levels(), size=50)
    early = [slot(subject=f"early {n}") for n in range(50)]
    late = [slot(subject=f"late {n}") for n in range(100)]
    for asked in early:
        assert count(local, asked, 4).allowed
    assert sum(count(local, asked).allowed for asked in late) == 10
    assert len(local) == 51
    assert [count(local, asked, 7).allowed for asked in early] == [False] * 50
    bills = [local.bill(asked.subject, 0, last=True) for asked in (*early, *late)]
    assert [bill.costs for bill in bills] == [[4]] * 50 + [[]] * 100


def test_what_is_full_again_makes_room() -> None:
    local, later = LocalStore(Levels(), size=50), 2 * 3600 * 1_000_000
    for number in range(50):
        count(local, slot(subject=str(number)), 4)
    for number in range(50):
        count(local, slot(subject=f"late {number}"), 4, later)
    assert len(local) == 50
    assert len(local.subjects()) == 50
    assert all(subject.startswith("late") for subject in local.subjects())
