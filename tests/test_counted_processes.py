"""A process that takes announces itself now and then, and learns how many there are."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest

from ratelimits.algorithms import Operation
from ratelimits.exceptions import StoreError, StoreUnavailable
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.stores import get_store
from ratelimits.stores.base import Group, Slot
from ratelimits.stores.processes import EVERY, SECOND, Processes, announced
from tests.processes import run_processes
from tests.servers import RedisServer
from tests.settings import redis_caches

GROUP = Group((Slot(Limit("n", Rate.parse("100/h")), "caller"),))


class Announcements:
    """A store that counts on until it is told to fail."""

    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)
        self.heard: list[tuple[str, int]] = []

    def __call__(self, ident: str, seconds: int) -> int:
        self.heard.append((ident, seconds))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_last_number_stays() -> None:
    store = Announcements(3, StoreUnavailable("away"), 4)
    processes = Processes(store)
    numbers = [processes.number]
    for _ in range(3):
        processes.count()
        numbers.append(processes.number)
    assert numbers == [1, 3, 3, 4]
    assert len({ident for ident, _ in store.heard}) == 1


def test_nobody_else_is_known_until_the_store_was_asked() -> None:
    processes = Processes(Announcements(StoreUnavailable("away")))
    processes.count()
    assert (processes.counted, processes.number) == (None, 1)


def test_a_bug_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    processes = Processes(Announcements(StoreError("no list"), StoreError("no list")))
    processes.count()
    processes.count()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "no list" in caplog.text


def test_workers_says_it_without_a_thread(settings: Any) -> None:
    settings.RATELIMITS = {"WORKERS": 6}
    processes = Processes(Announcements())
    before = set(threading.enumerate())
    processes.start(0)
    assert set(threading.enumerate()) <= before
    assert processes.number == 6
    assert processes.due > 0


def test_often_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes start at once, and the first of them finds nobody there yet."""
    processes = Processes(Announcements(*[1] * 20))
    started = []
    for _ in range(8):
        now = processes.due
        started.append(now // SECOND)
        processes.start(now)
    assert started == [0, 1, 3, 7, 15, 31, 61, 91]
    # A fork of this process.
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    now = processes.due
    processes.start(now)
    assert processes.due == now + SECOND < now + EVERY


def test_no_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    processes = Processes(Announcements())
    processes.start(0)
    assert processes.number == 1


def test_values_of_stores_that_keep_bytes() -> None:
    now = 1_000_000 * SECOND
    value, count = announced(b"", "a", now, 300)
    assert count == 1
    value, count = announced(value, "b", now + 299 * SECOND, 300)
    assert count == 2
    value, count = announced(value, "b", now + 300 * SECOND, 300)
    assert count == 1, "a is gone"
    # Another clock is behind.
    value, count = announced(value, "c", now, 301)
    assert count == 2
    assert announced(b"\xff rubbish\nx y z\n\n", "a", now, 300)[1] == 1


def taken_by_forks(index: int) -> list[int]:
    """What a process and its fork find, which take from the same store."""
    guarded: Any = get_store()

    def counts(number: int) -> bool:
        deadline = time.monotonic() + 30
        while guarded.processes.counted != number and time.monotonic() < deadline:
            guarded.run(Operation.TAKE, GROUP, [1])
            time.sleep(0.01)
        return bool(guarded.processes.number == number)

    alone = counts(1)
    child = os.fork()
    if child == 0:
        os._exit(0 if counts(2) else 1)
    _, status = os.waitpid(child, 0)
    return [int(alone), status, int(counts(2))]


@pytest.mark.django_db(transaction=True)
def test_processes_and_their_forks(redis_server: RedisServer) -> None:
    settings = {
        "CACHES": redis_caches(redis_server.url),
        "RATELIMITS": {"STORE_TIMEOUT": 20},
    }
    assert run_processes(taken_by_forks, 1, settings=settings) == [[1, 0, 1]]
