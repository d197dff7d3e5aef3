"""What was admitted while the store was away is charged to it when it is back: once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from freezegun import freeze_time

from ratelimits.algorithms import Operation
from ratelimits.exceptions import (
    InvalidStore,
    PartUnavailable,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.stores import charging
from ratelimits.stores.base import Answer, Group, Slot
from ratelimits.stores.charging import may_be_done
from ratelimits.stores.guarded import GuardedStore
from tests.failing import (
    FailingStore,
    caused,
    come_back,
    is_settled,
    refused,
    soon,
    timed_out,
)
from tests.waiting import wait_until

__all__ = ["soon"]

ALGORITHMS = ("token_bucket", "fixed_window", "sliding_log", "sliding_counter")
TAKE, CHARGE, REFUND = Operation.TAKE, Operation.CHARGE, Operation.REFUND
pytestmark = pytest.mark.usefixtures("soon")


@pytest.fixture(autouse=True)
def clock(request: pytest.FixtureRequest) -> Iterator[Any]:
    if "real_time" in request.fixturenames:
        # freezegun freezes no time that threads ask for.
        yield None
        return
    with freeze_time("2026-07-01T12:00:00Z") as frozen:
        yield frozen


@pytest.fixture
def store() -> FailingStore:
    return FailingStore()


@pytest.fixture
def guarded(store: FailingStore, settings: Any) -> Iterator[GuardedStore]:
    settings.RATELIMITS = {"WORKERS": 1, "LOCAL_REFUSALS": 0}
    guarded = GuardedStore(store)
    yield guarded
    # Or it would be logged in the next test that it is back.
    store.script, store.fault = [], None
    wait_until(lambda: not guarded.breaker.is_open)


@pytest.fixture
def real_time() -> None:
    pass


def slot(rate: str = "10/h", subject: str = "caller", **options: Any) -> Slot:
    return Slot(Limit("n", Rate.parse(rate), **options), subject)


def ask(guarded: GuardedStore, asked: Slot, cost: int = 1, operation: Operation = TAKE) -> Answer:
    return guarded.run(operation, Group((asked,)), [cost])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_as_if_it_had_counted_all_along(
    algorithm: str, store: FailingStore, guarded: GuardedStore
) -> None:
    asked = slot(algorithm=algorithm)
    ask(guarded, asked, 3)
    store.fault = refused
    assert [ask(guarded, asked, cost).allowed for cost in (2, 1, 5, 1)] == [True, True, False, True]
    assert store.left(asked) == [7]
    come_back(store, guarded)
    assert store.left(asked) == [3]
    assert ask(guarded, asked, 3).allowed
    assert not ask(guarded, asked).allowed


@pytest.mark.usefixtures("real_time")
def test_it_is_charged_before_requests_ask_it_again(
    store: FailingStore, guarded: GuardedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, found = slot(), list[list[int]]()
    monkeypatch.setattr(guarded.breaker, "_after", lambda: found.append(store.charged.copy()))
    store.fault = refused
    ask(guarded, asked, 4)
    store.fault = None
    wait_until(lambda: bool(found))
    assert found == [[4]]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_several_processes(algorithm: str, store: FailingStore, settings: Any) -> None:
    settings.RATELIMITS = {"WORKERS": 4, "LOCAL_REFUSALS": 0}
    asked, four = slot("100/h", algorithm=algorithm), [GuardedStore(store) for _ in range(4)]
    for process in four:
        ask(process, asked, 5)
    for process in four:
        ask(process, asked, 0, Operation.PEEK)
    store.fault = refused
    admitted = sum(ask(process, asked).allowed for process in four for _ in range(40))
    assert admitted == 80
    come_back(store, *four)
    assert store.left(asked) == [80 - admitted]


def test_what_drained_meanwhile_is_not_charged(
    store: FailingStore, guarded: GuardedStore, clock: Any
) -> None:
    asked = slot("60/h")
    ask(guarded, asked, 20)
    store.fault = refused
    ask(guarded, asked, 30)
    # 50 in use: a minute drains one.
    clock.tick(25 * 60)
    ask(guarded, asked, 1)
    come_back(store, guarded)
    assert store.left(asked) == [60 - 26]


@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_log", "sliding_counter"])
def test_windows_that_have_ended(
    algorithm: str, store: FailingStore, guarded: GuardedStore, clock: Any
) -> None:
    asked = slot(algorithm=algorithm)
    store.fault = refused
    ask(guarded, asked, 6)
    clock.tick(2 * 3600)
    ask(guarded, asked, 3)
    come_back(store, guarded)
    assert store.left(asked) == [7]


def test_refunds_charges_and_resets_meanwhile(store: FailingStore, guarded: GuardedStore) -> None:
    one, two, three = (slot(subject=name) for name in ("one", "two", "three"))
    store.fault = refused
    ask(guarded, one, 6)
    ask(guarded, one, 4, REFUND)
    ask(guarded, two, 99, CHARGE)
    ask(guarded, three, 6)
    with pytest.raises(StoreUnavailable):
        guarded.reset(Group((three,)))
    ask(guarded, three, 1)
    come_back(store, guarded)
    assert store.left(one, two, three) == [8, 0, 9]


def test_edits_meanwhile(store: FailingStore, guarded: GuardedStore) -> None:
    """Charged is the limit as it is by then."""
    ask(guarded, slot("10/h"), 8)
    store.fault = refused
    assert ask(guarded, slot("10/h"), 2).allowed
    assert ask(guarded, slot("30/h"), 15).allowed
    come_back(store, guarded)
    assert store.left(slot("30/h")) == [5]


def test_each_way_of_going_on(store: FailingStore, guarded: GuardedStore) -> None:
    """Also what is let pass is counted, and not published; what is denied takes nothing."""
    local, allow, deny = (
        slot(subject=way, on_store_failure=way) for way in ("local", "allow", "deny")
    )
    store.fault = refused
    both = Group((local, allow))
    answers = [guarded.run(TAKE, both, [2, 7]) for _ in range(3)]
    assert [answer.allowed for answer in answers] == [True] * 3
    assert [answer.fitted for answer in answers] == [(True, True)] * 3
    assert {answer.states[1] for answer in answers} == {None}
    denied = guarded.run(TAKE, Group((local, deny)), [1, 1])
    assert (denied.allowed, denied.unavailable) == (False, True)
    refusal = guarded.run(TAKE, Group((local, allow)), [9, 1])
    assert (refusal.allowed, refusal.fitted) == (False, (False, True))
    come_back(store, guarded)
    assert store.left(local, allow, deny) == [4, 0, 10]


@pytest.mark.parametrize("does", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_call_that_may_have_been_done(
    is_async: bool, does: bool, store: FailingStore, guarded: GuardedStore
) -> None:
    """A stopped server does, when it goes on, what nobody waits for any more."""
    asked = Group((slot(),))
    store.fault, store.does = timed_out, does
    for cost in (3, 2):
        if is_async:
            assert (await guarded.arun(TAKE, asked, [cost])).allowed
        else:
            assert guarded.run(TAKE, asked, [cost]).allowed
    # Only the first was sent.
    store.does = False
    come_back(store, guarded)
    assert store.left(slot()) == [5 if does else 8]


FIVE = [slot(subject=name) for name in "abcde"]


@pytest.mark.parametrize("fault", [refused, lambda: caused(FullError())])
def test_it_fails_again_before_all_is_charged(
    fault: Callable[[], StoreUnavailable], store: FailingStore, guarded: GuardedStore
) -> None:
    """Nothing is lost, and nothing charged twice."""
    store.fault = refused
    for asked in FIVE:
        ask(guarded, asked, 4)
    store.script = [None, None, fault, fault, None, fault]
    come_back(store, guarded)
    assert store.left(*FIVE) == [6] * 5


class FullError(Exception):
    """As client libraries name a server's own refusal."""


FullError.__name__ = "ResponseError"


@pytest.mark.parametrize("does", [True, False])
def test_a_charge_that_may_have_been_done(
    does: bool, store: FailingStore, guarded: GuardedStore
) -> None:
    """It counts as done."""
    store.fault = refused
    for asked in FIVE:
        ask(guarded, asked, 4)
    store.script, store.does = [None, timed_out], does
    store.fault = None
    wait_until(lambda: is_settled(guarded))
    lost = [] if does else [10]
    assert sorted(store.left(*FIVE)) == [6] * (5 - len(lost)) + lost


@pytest.mark.usefixtures("real_time")
def test_two_that_charge_at_once(store: FailingStore, guarded: GuardedStore) -> None:
    """One does not take for paid what the other may fail to pay."""
    sent, answered = threading.Event(), threading.Event()

    def slow() -> StoreUnavailable:
        sent.set()
        answered.wait(30)
        return refused()

    store.fault = refused
    ask(guarded, slot(), 4)
    store.script, store.fault = [slow], None
    assert sent.wait(30)
    other = threading.Thread(target=guarded.charging._charge, args=(float("inf"), True))
    other.start()
    other.join(0.3)
    answered.set()
    other.join()
    come_back(store, guarded)
    assert store.left(slot()) == [6]


def test_takes_go_on_where_it_fails_between(store: FailingStore, guarded: GuardedStore) -> None:
    """Whoever was charged already goes on from there, in the process."""
    one, two = slot(subject="one"), slot(subject="two")
    store.fault = refused
    for asked in (one, two):
        ask(guarded, asked, 4)
    store.script = [None, *[refused] * 10_000]
    store.fault = None
    wait_until(lambda: store.left(one) == [6] and len(store.script) < 9_990)
    assert guarded.breaker.is_open
    assert sum(ask(guarded, one).allowed for _ in range(20)) == 6
    store.script = []
    come_back(store, guarded)
    assert store.left(one, two) == [0, 6]


def test_a_store_that_was_too_busy_for_one_call(store: FailingStore, guarded: GuardedStore) -> None:
    """It is charged soon, since nobody probes it."""
    asked = slot()
    store.fault = lambda: StoreBusy("others are faster")
    ask(guarded, asked, 3)
    store.script = [store.fault, store.fault]
    come_back(store, guarded)
    assert not store.script
    assert store.left(asked) == [7]


def test_a_part_of_it_that_is_away_is_looked_at_ever_more_seldom(
    store: FailingStore, guarded: GuardedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is back. All that is counted without it is looked at each time."""
    threads = Mock(return_value=True)
    monkeypatch.setattr(charging, "in_background", threads)
    store.fault = lambda: PartUnavailable("one of three")
    for _ in range(3):
        ask(guarded, slot(), 2)
    assert threads.call_count == 1
    assert not guarded.breaker.is_open, "others go on"
    look = guarded.charging.look
    assert [look(pause) for pause in (0.1, 0.2, 0.4, 0.8, 1.0)] == [0.2, 0.4, 0.8, 1.0, 1.0]
    store.fault = None
    assert [look(1.0) for _ in range(3)] == [charging.PAUSE, charging.PAUSE, 0.0]
    assert store.left(slot()) == [4]
    assert is_settled(guarded)


def test_where_only_a_bug_explains_it(
    store: FailingStore,
    guarded: GuardedStore,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process goes on counting, and says once that the store does not."""
    asked = slot()
    soon = Mock()
    monkeypatch.setattr(guarded.charging, "soon", soon)
    store.fault = lambda: StoreError("not a bucket")
    assert sum(ask(guarded, asked).allowed for _ in range(20)) == 10
    assert not soon.called, "it would fail again"
    guarded.breaker.trip(refused())
    store.script = [store.fault] * 50
    store.fault = None
    wait_until(lambda: not guarded.breaker.is_open)
    wait_until(lambda: "can't be charged" in caplog.text)
    assert caplog.text.count("can't be charged") == 1
    store.fault = lambda: StoreError("not a bucket")
    assert not ask(guarded, asked).allowed


@pytest.mark.usefixtures("real_time")
@pytest.mark.parametrize("fault", [refused, timed_out])
def test_no_take_is_lost_or_charged_twice(
    fault: Callable[[], StoreUnavailable], store: FailingStore, guarded: GuardedStore
) -> None:
    """Threads take while the store goes and comes back, again and again."""
    store.does = fault is timed_out
    slots = [slot("1000000/30d", subject=str(n), algorithm="fixed_window") for n in range(20)]
    groups, stop, counts = [Group((each,)) for each in slots], threading.Event(), [0] * 4

    def work(thread: int) -> None:
        while not stop.is_set():
            for group in groups:
                counts[thread] += guarded.run(TAKE, group, [1]).allowed

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        store.fault = fault
        wait_until(lambda: guarded.breaker.is_open)
        store.fault = None
        wait_until(lambda: not guarded.breaker.is_open)
    stop.set()
    for thread in threads:
        thread.join()
    wait_until(lambda: is_settled(guarded))
    assert sum(counts) == sum(1_000_000 - left for left in store.left(*slots))
    assert sum(counts) > 0


def test_a_fork_owes_nothing_for_its_parent(
    store: FailingStore, guarded: GuardedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, pid = slot(), os.getpid()
    store.fault = refused
    ask(guarded, asked, 4)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: pid + 1)
        assert guarded._local().subjects() == []
    assert guarded._local().subjects() == ["caller"]
    come_back(store, guarded)
    assert store.left(asked) == [6]


def test_with_the_clock_of_the_process(
    store: FailingStore, guarded: GuardedStore, settings: Any, clock: Any
) -> None:
    """Frozen, and given with each call."""
    from ratelimits.clock import microseconds

    settings.RATELIMITS = {**settings.RATELIMITS, "CLOCK": "process"}
    store.ahead = 3600 * 1_000_000
    group = Group((slot("60/h"),))
    guarded.run(TAKE, group, [20], microseconds())
    store.fault = refused
    clock.tick(600)
    assert guarded.run(TAKE, group, [50], microseconds()).allowed
    come_back(store, guarded)
    store.ahead = 0
    assert store.left(slot("60/h")) == [0]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (StoreUnavailable("the breaker is open"), False),
        (InvalidStore("no such alias"), False),
        (refused(), False),
        (caused(OSError("Timeout connecting to server")), False),
        (caused(FullError("OOM command not allowed")), False),
        (timed_out(), True),
        (PartUnavailable("its breaker is open"), False),
        (caused(TimeoutError("Timeout reading from socket"), PartUnavailable("away")), True),
        (caused(TimeoutError("TRYAGAIN"), StoreBusy("moving")), False),
        (caused(ConnectionResetError("Connection reset by peer")), True),
        (StoreBusy("others are faster"), False),
    ],
)
def test_what_may_have_been_done(error: StoreUnavailable, expected: bool) -> None:
    assert may_be_done(error) is expected
