"""How what was counted gets to the store: nothing twice, nothing lost, no request slower."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from freezegun import freeze_time
from redis.exceptions import TimeoutError

from ratelimits import limiter, usage
from ratelimits.exceptions import StoreError, StoreUnavailable
from ratelimits.limits import Owner
from ratelimits.models import Plan
from ratelimits.stores.usage import MemoryTables, Pages, Wanted
from ratelimits.stores.usage_entries import ALL, REST, unpacked
from ratelimits.usage import recorder as module
from ratelimits.usage.kept import AT_ONCE
from ratelimits.usage.pages import field_of, minute_page, now, pages_of
from ratelimits.usage.recorder import FAILURES, Recorder, recorder

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh", "plan")]
NOON = "2026-07-01 12:00:10"


@pytest.fixture
def plan() -> Plan:
    plan = Plan.objects.create(slug="pro", name="Pro", is_default=True)
    plan.limits.create(name="api", rate="1000/h")
    return plan


class Tables(MemoryTables):
    """A store that fails as it is told, before or after it has counted."""

    thrift = 1

    def __init__(self) -> None:
        super().__init__()
        self.failing: Exception | None = None
        self.counts = False

    def add(self, pages: Pages, entries: Any) -> tuple[int, int]:
        if self.failing is None:
            return super().add(pages, entries)
        if self.counts:
            super().add(pages, entries)
        raise self.failing


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tables]:
    tables = Tables()
    store = type("Patient", (), {"usage": tables})
    for name in ("ratelimits.usage.recorder", "ratelimits.usage.asking"):
        monkeypatch.setattr(f"{name}.patient_store", lambda: store)
    yield tables


def requests(key: str = "acme", minutes: int = 60) -> int:
    (counts,) = usage.recent([key], minutes)
    return counts.requests


def test_kept_while_the_store_is_away(tables: Tables) -> None:
    """And then written to the minutes that it is of."""
    tables.failing = StoreUnavailable("away")
    for minute in (1, 2, 4):
        with freeze_time(f"2026-07-01 12:{minute:02}:50"):
            for _ in range(minute):
                limiter.take("acme")
            with pytest.raises(StoreUnavailable):
                usage.flush()
    tables.failing = None
    with freeze_time("2026-07-01 12:05:00"):
        assert requests() == 0
        usage.flush()
        usage.flush()
        points = usage.history("acme", minutes=5).minutes
        assert [point.total.requests for point in points] == [1, 2, 0, 4, 0]


@freeze_time(NOON)
@pytest.mark.parametrize("counted", [True, False])
def test_what_may_be_written_is_not_written_twice(tables: Tables, counted: bool) -> None:
    limiter.take("acme")
    tables.failing, tables.counts = StoreUnavailable("no answer"), counted
    tables.failing.__cause__ = TimeoutError("Timeout reading from the socket")
    with pytest.raises(StoreUnavailable):
        usage.flush()
    tables.failing = None
    usage.flush()
    assert requests() == counted


@freeze_time(NOON)
def test_callers_that_wait_are_bounded(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a flood of addresses no tenant is lost, and of everybody nothing is."""
    monkeypatch.setattr(recorder, "most_kept", 10)
    recorder.forget()
    tables.failing = StoreUnavailable("away")
    for number in range(20):
        recorder.note(_taken(Owner("address", f"192.0.2.{number}")))
    for number in range(4):
        limiter.take(f"tenant {number}")
    with pytest.raises(StoreUnavailable):
        usage.flush()
    tables.failing = None
    usage.flush()
    addresses = usage.recent([f"192.0.2.{number}" for number in range(20)], kind="address")
    assert [counts.requests for counts in addresses] == [1] * 5 + [0] * 15
    assert all(counts.at_least for counts in addresses)
    assert [requests(f"tenant {number}") for number in range(4)] == [1] * 4
    assert usage.totals().minutes[-1].total.requests == 24


@freeze_time(NOON)
def test_of_a_flood_only_so_many_are_written(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tenants first, and then those who asked most: a server has other things to do."""
    monkeypatch.setattr(recorder, "most_written", 4)
    recorder.forget()
    for number in range(10):
        for _ in range(number + 1):
            recorder.note(_taken(Owner("address", f"192.0.2.{number}")))
    limiter.take("acme")
    usage.flush()
    addresses = usage.recent([f"192.0.2.{number}" for number in range(10)], kind="address")
    assert [counts.requests for counts in addresses] == [0] * 7 + [8, 9, 10]
    assert requests() == 1
    assert usage.totals().minutes[-1].total.requests == 56


def test_a_bug_in_noting_fails_no_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "waiting", None)
    assert limiter.take("acme").allowed
    assert "A bug in the recording of usage." in caplog.text
    recorder.forget()


def _taken(owner: Owner) -> Any:
    limiter.take("somebody")
    noted: Any = recorder.waiting.pop()
    group = type(noted.group)(noted.group.slots, owner=owner)
    return noted._replace(group=group)


@freeze_time(NOON)
def test_a_table_is_cut(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who did least are dropped first, and it is told that there were more."""
    monkeypatch.setattr(module, "MINUTE_CALLERS", 4)
    monkeypatch.setattr(module, "HOUR_CALLERS", 8)
    for number in range(10):
        for _ in range(number + 1):
            limiter.take(f"tenant {number}")
        usage.flush()
    (minute,) = tables.read([Wanted(minute_page(pages_minute()))])
    assert len(set(minute) - {ALL, REST}) <= 5
    assert field_of(Owner("tenant", "tenant 9")) in minute
    assert unpacked(minute[ALL])[""][0] == 55
    top = usage.top()
    assert top.cut
    assert [used.counts.requests for used in top.callers][:6] == [10, 9, 8, 7, 6, 5]
    # The hour knows of more than the minute does.
    (fifth,) = usage.recent(["tenant 4"])
    assert (fifth.requests, fifth.at_least) == (5, True)


def pages_minute() -> int:
    return now() // 60


@freeze_time(NOON)
def test_no_more_than_so_many_wait_to_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "most_waiting", 10)
    for _ in range(25):
        limiter.take("acme")
    assert len(recorder.waiting) == 5
    usage.flush()
    assert requests() == 25


@freeze_time(NOON)
def test_many_callers_are_written_in_several_parts(tables: Tables) -> None:
    for number in range(AT_ONCE * 2 + 1):
        limiter.take(f"tenant {number}")
    usage.flush()
    counts = usage.recent([f"tenant {number}" for number in range(AT_ONCE * 2 + 1)])
    assert [each.requests for each in counts] == [1] * len(counts)
    assert usage.totals().minutes[-1].total.requests == len(counts)


def test_faults_are_told_once(tables: Tables, caplog: pytest.LogCaptureFixture) -> None:
    tables.failing = StoreError("no such command")
    limiter.take("acme")
    told = []
    for _ in range(2 * FAILURES):
        recorder._write_quietly()
        told.append(len(caplog.records))
    assert told == [0] * (FAILURES - 1) + [1] * (FAILURES + 1)
    assert caplog.records[0].getMessage() == "Usage can't be written: no such command"
    assert caplog.records[0].levelno == logging.ERROR
    tables.failing = None
    usage.flush()
    assert requests() == 1


def test_a_bug_fails_no_request(tables: Tables, caplog: pytest.LogCaptureFixture) -> None:
    tables.failing = ZeroDivisionError()
    limiter.take("acme")
    recorder._write_quietly()
    assert "A bug in the recording of usage." in caplog.text


def test_no_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(recorder, "by_itself", True)
    assert limiter.take("acme").allowed
    usage.flush()
    assert requests() == 1


def test_the_thread_ends_when_nothing_is_asked(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was noted in its last moment has another one."""
    own = Recorder()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            own.note(_taken(Owner("tenant", "acme")))

    monkeypatch.setattr("ratelimits.usage.recorder.time.sleep", sleep)
    monkeypatch.setattr(own, "_wake", lambda: None)
    own._run()
    assert sum(slept) == pytest.approx(module.REST_FOR + 2 * module.EVERY)
    assert requests() == 1


def test_pages_end_later_than_they_are_read() -> None:
    pages = pages_of(pages_minute())
    assert pages.minute_seconds > 3 * 3600
    assert pages.hour_seconds > 3 * 86400


def test_the_end_waits_for_what_is_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread has taken the last batch and not sent it yet, and would end with the process."""
    monkeypatch.setattr(recorder, "by_itself", True)
    last = threading.Thread(target=recorder._last)
    with recorder._writing:
        assert not recorder._kept
        last.start()
        last.join(0.5)
        assert last.is_alive()
    last.join(30)
    assert not last.is_alive()
