"""While the store is away, a process goes on from the level that it last saw there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from freezegun import freeze_time

from ratelimits.algorithms import Operation
from ratelimits.counting import outcomes_of
from ratelimits.exceptions import StoreUnavailable
from ratelimits.limits import SECOND, Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Answer, Group, Slot
from ratelimits.stores.guarded import GuardedStore
from ratelimits.stores.levels import MOST_SUBJECTS, Levels
from tests.failing import FailingStore, refused, soon

__all__ = ["soon"]

ALGORITHMS = ("token_bucket", "fixed_window", "sliding_log", "sliding_counter")
TAKE = Operation.TAKE
pytestmark = pytest.mark.usefixtures("soon")


@pytest.fixture(autouse=True)
def clock() -> Iterator[Any]:
    with freeze_time("2026-07-01T12:00:00Z") as frozen:
        yield frozen


def limit(rate: str = "100/h", name: str = "n", **options: Any) -> Limit:
    return Limit(name, Rate.parse(rate), **options)


def group(*limits: Limit, subject: str = "caller", **options: Any) -> Group:
    return Group(tuple(Slot(each, subject) for each in limits), **options)


def take(store: GuardedStore, asked: Group, cost: int = 1) -> Answer:
    return store.run(TAKE, asked, [cost] * len(asked.slots))


def admitted(processes: list[GuardedStore], asked: Group, tries: int) -> int:
    return sum(take(process, asked).allowed for process in processes for _ in range(tries))


def processes(store: FailingStore, count: int, settings: Any) -> list[GuardedStore]:
    settings.RATELIMITS = {"WORKERS": count, "LOCAL_REFUSALS": 0}
    return [GuardedStore(store) for _ in range(count)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("used", [0, 40, 43, 99, 100])
def test_together_they_admit_what_is_left(algorithm: str, used: int, settings: Any) -> None:
    """Less than a unit each is lost to rounding, and nothing won."""
    store, asked = FailingStore(), group(limit(algorithm=algorithm))
    four = processes(store, 4, settings)
    take(four[0], asked, used)
    for process in four:
        process.run(Operation.PEEK, asked, [0])
    store.fault = refused
    assert 100 - used - 3 <= admitted(four, asked, 60) <= 100 - used


def test_who_saw_less_knows_less(settings: Any) -> None:
    """The last level seen is what this process saw."""
    store, asked = FailingStore(), group(limit())
    one, two = processes(store, 2, settings)
    take(one, asked, 10)
    take(two, asked, 80)
    store.fault = refused
    assert admitted([one], asked, 60) == 45
    assert admitted([two], asked, 60) == 5


def test_what_drained_since_is_drained(settings: Any, clock: Any) -> None:
    store, asked = FailingStore(), group(limit("60/h"))
    (process,) = processes(store, 1, settings)
    take(process, asked, 60)
    clock.tick(600)
    store.fault = refused
    assert admitted([process], asked, 60) == 10


def test_the_window_before_is_shared_too(settings: Any, clock: Any) -> None:
    store, asked = FailingStore(), group(limit(algorithm="sliding_counter"))
    four = processes(store, 4, settings)
    take(four[0], asked, 40)
    clock.tick(5400)
    for process in four:
        process.run(Operation.PEEK, asked, [0])
    store.fault = refused
    assert admitted(four, asked, 60) == 80


def test_a_part_of_a_unit_is_shared_too(settings: Any) -> None:
    """1 of 4 used, by four: each is a quarter of a unit short, and has a whole one in 15 min."""
    store, asked = FailingStore(), group(limit("4/h"))
    (process, *_) = processes(store, 4, settings)
    take(process, asked)
    store.fault = refused
    assert not take(process, asked).allowed
    with freeze_time("2026-07-01T12:15:00Z"):
        assert take(process, asked).allowed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_limits_of_another_scope_are_known_too(algorithm: str, settings: Any) -> None:
    """The bucket for everything is in the groups of all scopes of a caller."""
    store, everything = FailingStore(), limit("10/h", algorithm=algorithm)
    (process,) = processes(store, 1, settings)
    search = group(everything, limit("20/h", "search"))
    other = group(everything)
    take(process, other, 1)
    take(process, search, 6)
    store.fault = refused
    assert admitted([process], other, 20) == 3
    assert take(process, group(limit("20/h", "search")), 14).allowed


def test_another_callers_bucket_of_the_same_name_is_another(settings: Any) -> None:
    store = FailingStore()
    (process,) = processes(store, 1, settings)
    take(process, group(limit(), subject="one"), 90)
    store.fault = refused
    assert take(process, group(limit(), subject="two"), 100).allowed


def test_a_changed_algorithm_starts_fresh(settings: Any) -> None:
    store = FailingStore()
    (process,) = processes(store, 1, settings)
    take(process, group(limit()), 90)
    store.fault = refused
    assert take(process, group(limit(algorithm="sliding_log")), 100).allowed


def test_an_edited_rate_keeps_what_was_used(settings: Any) -> None:
    """Before the store goes, and while it is away."""
    store = FailingStore()
    (process,) = processes(store, 1, settings)
    take(process, group(limit("10/h")), 8)
    store.fault = refused
    assert admitted([process], group(limit("15/h")), 20) == 7
    assert admitted([process], group(limit("30/h")), 20) == 15


def test_what_was_reset_is_forgotten(settings: Any) -> None:
    """Before the store goes, and as far as this process is concerned, also while it is away."""
    store, asked = FailingStore(), group(limit("10/h"))
    (process,) = processes(store, 1, settings)
    take(process, asked, 9)
    process.reset(asked)
    store.fault = refused
    assert admitted([process], asked, 20) == 10
    with pytest.raises(StoreUnavailable):
        process.reset(group(limit("10/h"), limit("5/h", "other")), ("caller",))
    assert admitted([process], asked, 20) == 10


@pytest.mark.parametrize("ahead", [-7, 7])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_clock_is_the_stores(algorithm: str, ahead: int, settings: Any, clock: Any) -> None:
    """Windows and levels fit together although this process's clock is wrong by seconds."""
    store = FailingStore(ahead * SECOND)
    asked = group(limit("10/m", algorithm=algorithm))
    (process,) = processes(store, 1, settings)
    # By the store's clock a window has just begun.
    clock.move_to("2026-07-01T12:04:53Z" if ahead == 7 else "2026-07-01T12:05:07Z")
    assert admitted([process], asked, 10) == 10
    clock.tick(2)
    before = process.run(Operation.PEEK, asked, [1])
    store.fault = refused
    away = take(process, asked)
    assert not away.allowed
    told = [next(iter(outcomes_of(TAKE, asked, [1], answer))) for answer in (before, away)]
    waits = [outcome.wait_us or 0 for outcome in told]
    # When a log's hits were is not known: none ends earlier than the last one.
    assert waits[1] - waits[0] == (2 * SECOND if algorithm == "sliding_log" else 0)
    clock.tick(waits[1] / SECOND + 0.001)
    assert take(process, asked).allowed


def test_answers_about_other_versions_are_none(settings: Any) -> None:
    """The store said that the limits were edited, and nothing of what was used."""
    levels, asked = Levels(), group(limit())
    levels.learn(asked, Answer(0, False, (), (), stale=("newer",)), 0)
    assert levels.seen(asked, 0).state is None


def test_memory_is_bounded() -> None:
    """What is known of a group stays with it; about callers, the newest thousands are kept."""
    store, levels = FailingStore(), Levels()
    first = group(limit("10/h"), subject="first")
    levels.learn(first, store.run(TAKE, first, [4]), 0)
    for number in range(3 * MOST_SUBJECTS):
        other = group(limit("10/h"), subject=str(number))
        levels.learn(other, store.run(TAKE, other, [4]), 0)
    assert len(levels._young) + len(levels._old) <= 2 * MOST_SUBJECTS + 2
    again = group(limit("10/h"), subject="first")
    states = [levels.seen(each, 0).state for each in (first, again, other)]
    assert [state is None for state in states] == [False, True, False]
