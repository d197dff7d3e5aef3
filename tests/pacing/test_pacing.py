"""What leaves by the book passes theirs, however the calls overtake each other on their way."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratelimits.pacing.books import run
from ratelimits.pacing.calls import SECOND, Action, Call, Reply, Told, Verdict, alone, ask_of
from ratelimits.pacing.terms import Pace
from tests.conformance.stores import NOON

DAY = 86400 * SECOND


class Book:
    """A book of one credential, and one customer's share of it, at times of the test's choice."""

    def __init__(self, *paces: Pace, guard: int = 0) -> None:
        self.paces = list(paces)
        self.guard = guard
        self.book: dict[str, str] = {}
        self.share: dict[str, str] = {}

    def call(self, action: Action = Action.BOOK, units: int = 1, **more: object) -> Call:
        asks = {
            per: tuple(ask_of(pace, units, self.guard) for pace in self.paces if pace.per == per)
            for per in ("credential", "tenant")
        }
        call = Call(action, asks["credential"], asks["tenant"], DAY, self.guard)
        return call._replace(**more)  # type: ignore[arg-type]

    def do(self, now: int, call: Call) -> Reply:
        done = run(call, self.book, self.share, now)
        self.book |= done.book
        self.share |= done.share
        return done.reply

    def ask(self, now: int, units: int = 1, **more: object) -> Reply:
        return self.do(now, self.call(units=units)._replace(**more))  # type: ignore[arg-type]


def bucket(quota: int, seconds: int = 1, burst: int | None = None, per: str = "credential") -> Pace:
    return Pace(f"b{per}", "b", "bucket", quota, seconds * SECOND, burst or quota, per)


def window(quota: int, seconds: int = 1) -> Pace:
    return Pace("w", "w", "window", quota, seconds * SECOND, quota)


PAUSES = [0, 0, 0, 1, 40_000, 333_333, SECOND, 9 * SECOND]
pauses = st.lists(st.tuples(st.sampled_from(PAUSES), st.integers(1, 3)), min_size=1, max_size=40)
jitters = st.lists(st.integers(0, 1000), min_size=40, max_size=40)


def arrivals(
    book: Book, calls: Sequence[tuple[int, int]], jitter: Sequence[int]
) -> list[tuple[int, int]]:
    """When each call arrives, and its units: up to `guard` after it left, in thousandths."""
    now, arrived = NOON, []
    for (pause, units), late in zip(calls, jitter, strict=False):
        now += pause
        reply = book.ask(now, units)
        assert reply.verdict is Verdict.GO and reply.at >= now
        arrived.append((reply.at + book.guard * late // 1000, units))
    return sorted(arrived)


@given(pauses, jitters, st.integers(1, 12), st.sampled_from([1, 7, 60]), st.integers(3, 15),
       st.sampled_from([0, 10_000, 50_000, SECOND]))  # fmt: skip
def test_no_bucket_overflows(
    calls: list[tuple[int, int]],
    jitter: list[int],
    quota: int,
    seconds: int,
    burst: int,
    guard: int,
) -> None:
    book = Book(bucket(quota, seconds, burst), guard=guard)
    level, before = Fraction(burst), 0
    for at, units in arrivals(book, calls, jitter):
        refilled = Fraction((at - before) * quota, seconds * SECOND)
        level, before = min(Fraction(burst), level + refilled), at
        assert level >= units
        level -= units


@given(pauses, jitters, st.integers(3, 12), st.sampled_from([1, 7]), st.integers(0, 7 * SECOND),
       st.sampled_from([0, 50_000, SECOND]))  # fmt: skip
def test_no_window_overflows(
    calls: list[tuple[int, int]],
    jitter: list[int],
    quota: int,
    seconds: int,
    offset: int,
    guard: int,
) -> None:
    """Neither one that slides, nor one that begins whenever it likes."""
    size = seconds * SECOND
    arrived = arrivals(Book(window(quota, seconds), guard=guard), calls, jitter)
    fixed: dict[int, int] = {}
    for at, units in arrived:
        held = [other for time, other in arrived if at - size < time <= at]
        assert sum(held) <= quota
        number = (at + offset) // size
        fixed[number] = fixed.get(number, 0) + units
    assert max(fixed.values()) <= quota


@pytest.mark.parametrize(("pace", "last"), [(bucket(10), 3.05), (window(10), 3.15)])
def test_obeying_costs_the_guard_and_nothing_else(pace: Pace, last: float) -> None:
    book = Book(pace, guard=50_000)
    moments = [(book.ask(NOON).at - NOON) / SECOND for _ in range(40)]
    assert moments[:9] == [0] * 9
    assert moments[-1] == last
    assert moments == sorted(moments)


def test_a_call_that_would_wait_for_too_long_books_nothing() -> None:
    book = Book(bucket(1, 60))
    assert book.ask(NOON).at == NOON
    before = dict(book.book)
    reply = book.ask(NOON, budget=5 * SECOND)
    assert (reply.verdict, reply.ident) == (Verdict.LATER, "bcredential")
    assert reply.at >= 55 * SECOND
    assert {field: book.book[field] for field in ("lbcredential", "count")} == {
        field: before[field] for field in ("lbcredential", "count")
    }


def test_those_who_come_later_get_a_place_each() -> None:
    """All at one moment, they would be sent away again, but for one."""
    book = Book(bucket(10, burst=1))
    book.ask(NOON)
    delays = [book.ask(NOON, budget=0).at for _ in range(200)]
    assert delays == [(place + 1) * 100_000 for place in range(200)]
    # Each passes when it comes back.
    for delay in delays:
        assert book.ask(NOON + delay, budget=0).verdict is Verdict.GO


def test_a_block_is_everybodys_and_only_grows() -> None:
    book = Book(bucket(10))
    book.do(NOON, book.call(Action.BLOCK, budget=30 * SECOND, by="429", refused=1))
    book.do(NOON, book.call(Action.BLOCK, budget=2 * SECOND, by="429 again", refused=1))
    moments = [book.ask(NOON + SECOND).at - NOON for _ in range(3)]
    # Then paced, as from an empty bucket.
    assert moments == [30 * SECOND, 30_100_000, 30_200_000]
    later = book.ask(NOON, budget=SECOND)
    assert (later.verdict, later.by) == (Verdict.LATER, "429")
    assert later.at >= 30 * SECOND


def test_after_a_block_a_window_begins_slowly() -> None:
    """At its end nobody knows how much of theirs is left."""
    book = Book(window(10))
    book.do(NOON, book.call(Action.BLOCK, budget=SECOND))
    moments = [book.ask(NOON).at - NOON for _ in range(12)]
    assert moments == [SECOND + 100_000 * turn for turn in range(12)]
    # A window later it is one again.
    later = NOON + 4 * SECOND
    assert [book.ask(later).at for _ in range(3)] == [later] * 3


def test_a_moment_that_was_blocked_is_given_up() -> None:
    book = Book(bucket(1))
    book.ask(NOON)
    slot = book.ask(NOON).at
    assert book.ask(slot, slot=slot).at == slot
    book.do(NOON, book.call(Action.BLOCK, budget=5 * SECOND))
    assert book.ask(slot, slot=slot, has_share=True).at >= NOON + 5 * SECOND


def test_a_call_is_counted_once_however_often_it_is_blocked() -> None:
    book = Book(bucket(1))
    slot = book.ask(NOON).at
    for turn in range(1, 4):
        book.do(NOON, book.call(Action.BLOCK, budget=turn * SECOND, refused=1))
        slot = book.ask(NOON, slot=slot, has_share=True).at
    assert slot == NOON + 3 * SECOND
    assert book.book["count"].split()[1:3] == ["1", "3"]


def test_a_call_that_leaves_late_comes_back_late() -> None:
    """A window of theirs begins when they see it; a bucket has flowed in meanwhile."""
    book = Book(window(2), bucket(20), guard=80_000)
    moments = [book.ask(NOON).at for _ in range(4)]
    assert moments == [NOON, NOON, NOON + 1_080_000, NOON + 1_080_000]
    late = NOON + 1_500_000
    before = book.book["lbcredential"]
    # One of the two, and the other one by no more than the guard has room for.
    assert book.ask(late, slot=moments[2], has_share=True).at == moments[2]
    assert book.ask(NOON + 1_090_000, slot=moments[3], has_share=True).at == moments[3]
    assert book.book["lw"] == f"w {NOON + 1_080_000}:1 {late}:1"
    assert book.book["lbcredential"] == before
    assert [book.ask(late).at for _ in range(2)] == [NOON + 2_160_000, late + 1_080_000]


def test_a_block_can_be_lifted() -> None:
    book = Book(bucket(10), window(5))
    book.do(NOON, book.call(Action.BLOCK, budget=3600 * SECOND))
    book.do(NOON + 1, book.call(Action.LIFT))
    assert book.ask(NOON + 1).at == NOON + 1
    assert book.ask(NOON + 1).at == NOON + 100_001


@pytest.mark.parametrize("pace", [bucket(10), window(10)])
def test_lifting_is_the_way_out_after_a_clock_stepped_back(pace: Pace) -> None:
    book = Book(pace)
    for _ in range(25):
        book.ask(NOON)
    hour = 3600 * SECOND
    assert book.ask(NOON - hour, budget=SECOND).verdict is Verdict.LATER
    book.do(NOON - hour, book.call(Action.LIFT))
    assert book.ask(NOON - hour).at == NOON - hour


@pytest.mark.parametrize("pace", [bucket(10), window(10)])
def test_we_never_own_more_than_the_vendor_says_is_left(pace: Pace) -> None:
    book = Book(pace)
    told = (Told(0, 0, 2, SECOND // 2),)
    moments = [book.ask(NOON, told=told).at - NOON] + [book.ask(NOON).at - NOON for _ in range(3)]
    assert moments[:2] == [0, 0]
    assert moments[2] == (100_000 if pace.kind == "bucket" else SECOND // 2)


@pytest.mark.parametrize("pace", [bucket(10), window(10)])
def test_a_vendor_who_agrees_changes_nothing(pace: Pace) -> None:
    """What is left is told in whole units, of a moment that has passed."""
    book, other = Book(pace, guard=50_000), Book(pace, guard=50_000)
    now, told = NOON, ()
    for turn in range(60):
        one, two = book.ask(now, told=told), other.ask(now)
        assert one.at == two.at
        now = one.at
        left = max(0, 9 - turn) if pace.kind == "bucket" else 9 - turn % 10
        told = (Told(0, 0, left, SECOND),)  # type: ignore[assignment]


def test_a_rate_that_is_edited_keeps_what_was_used() -> None:
    book = Book(bucket(1, 3600, burst=10))
    for _ in range(10):
        book.ask(NOON)
    assert book.ask(NOON, budget=0).verdict is Verdict.LATER
    book.paces = [bucket(10, 1, burst=10)]
    assert book.ask(NOON).at == NOON + 100_000


def test_customers_share_a_credential() -> None:
    """Whoever has a thousand calls waiting lets others pass at their own pace."""
    paces = bucket(10), bucket(5, per="tenant")
    book = Book(*paces)
    ours: dict[str, str] = {}

    def turn_of(share: dict[str, str], now: int) -> Reply:
        book.share = share
        return book.ask(now)

    noisy: dict[str, str] = {}
    turns = []
    for _ in range(1000):
        reply = turn_of(noisy, NOON)
        noisy = book.share
        turns.append((reply.verdict, reply.at))
    assert turns[-1] == (Verdict.TURN, NOON + 995 * SECOND // 5)
    for _ in range(5):
        reply = turn_of(ours, NOON)
        ours = book.share
        assert (reply.verdict, reply.at) == (Verdict.GO, NOON)
    # The noisy one's turn has come: now it takes from what they share.
    book.share = noisy
    when = NOON + SECOND // 5
    assert book.ask(when, has_share=True).at == when


def test_alone_calls_to_a_window_keep_its_guard() -> None:
    ask = alone(ask_of(Pace("1", "calls", "window", 10, SECOND, 10), 2, SECOND // 2), 4)
    assert (ask.unit, ask.need) == (600_000, 1_200_000)


def test_alone_each_process_has_its_share() -> None:
    ask = ask_of(bucket(10), 1, 0)
    moments: list[int] = []
    for _ in range(8):
        fields: dict[str, str] = {}
        for _ in range(10):
            done = run(Call(Action.BOOK, (alone(ask, 8),), budget=DAY), fields, {}, NOON)
            fields |= done.book
            moments.append(done.reply.at - NOON)
    # At once one each, then ten in a second together.
    assert sum(moment < SECOND for moment in moments) <= 8 + 10
    assert sum(moment <= 5 * SECOND for moment in moments) <= 8 + 50
