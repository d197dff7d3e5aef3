"""What only databases do: rows, locks, connections of one's own, and their faults."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from ratelimits.algorithms import Operation
from ratelimits.exceptions import StoreUnavailable
from ratelimits.stores import database
from ratelimits.stores.base import Group
from ratelimits.stores.database import DatabaseStore
from tests.processes import run_processes

from .examples import ALGORITHMS
from .shared import migrate, settings_for, slots, the_store
from .stores import (
    NOON,
    SECOND,
    Calls,
    close,
    left,
    limit,
    new_subject,
    postgresql_store,
    sql,
    sqlite_store,
)


@pytest.fixture(params=["postgresql", "sqlite"])
def store(
    request: pytest.FixtureRequest, start_server: Any, really_connecting: Any
) -> Iterator[DatabaseStore]:
    with really_connecting(), ExitStack() as stack:
        if request.param == "sqlite":
            store = sqlite_store()
        else:
            server = start_server("postgresql")
            server.recover()
            store = postgresql_store(server)
        stack.callback(close, store)
        yield store


def rows(store: DatabaseStore) -> dict[str, tuple[bytes, int]]:
    found = sql(store, "SELECT key, value, expires_at FROM ratelimits_storerow")
    return {key: (bytes(value), expires) for key, value, expires in found}


def one_of_each(store: DatabaseStore) -> Calls:
    return Calls(store, *(limit("10/m", name, algorithm=name) for name in ALGORITHMS))


class TestRows:
    def test_one_row_holds_all_limits_of_a_caller(self, store: DatabaseStore) -> None:
        calls = one_of_each(store)
        assert calls.take(2).allowed
        ((key, (value, _)),) = rows(store).items()
        assert value[:1] == b"\x01"
        assert len(value) == 1 + 4 * 49 + 12, "and one hit of the log"
        assert len(key) == 24
        assert calls.subject not in key

    @pytest.mark.parametrize("value", [b"", b"\x02" + b"x" * 50, b"\x01half an entry", b"17"])
    def test_another_format_is_as_good_as_nothing(self, value: bytes, store: DatabaseStore) -> None:
        calls = Calls(store, limit("10/m"))
        calls.take(10)
        sql(store, "UPDATE ratelimits_storerow SET value = %s", value)
        assert calls.take(10).allowed
        assert not calls.take().allowed

    def test_refusals_and_peeks_leave_them_as_they_are(self, store: DatabaseStore) -> None:
        calls = one_of_each(store)
        calls.peek()
        assert rows(store) == {}
        calls.take(8)
        before = rows(store)
        for cost in (3, 11, 10**9):
            assert not calls.take(cost).allowed
            assert not calls.peek(cost, NOON + SECOND).allowed
            assert rows(store) == before

    def test_a_second_caller_that_refuses_costs_the_first_nothing(
        self, store: DatabaseStore
    ) -> None:
        own, everyone = new_subject(), new_subject()
        group = Group(
            slots(
                [own, "10/h", "own", "token_bucket", "tenant"],
                [everyone, "3/h", "all", "token_bucket", "everyone"],
            )
        )
        assert store.run(Operation.TAKE, group, [2, 2], NOON).allowed
        before = rows(store)
        assert store.run(Operation.TAKE, group, [2, 2], NOON).fitted == (True, False)
        assert rows(store) == before
        assert len(before) == 2

    @pytest.mark.parametrize(
        ("rate", "options", "least", "most"),
        [
            ("10/m", {}, 6, 7.1),
            ("10/h", {"algorithm": "sliding_log"}, 3600, 3601.1),
            ("1/60d", {}, 60 * 86400, 60 * 86400 + 1.1),
            ("10/m", {"algorithm": "fixed_window"}, 0, 61.1),
        ],
    )
    def test_they_live_until_the_buckets_are_full(
        self, rate: str, options: Any, least: float, most: float, store: DatabaseStore
    ) -> None:
        taken = time.time()
        Calls(store, limit(rate, **options)).take(at=None)
        ((_, expires),) = rows(store).values()
        assert least <= expires / SECOND - taken <= most + time.time() - taken

    def test_a_clock_that_stands_still_does_not_expire_them(self, store: DatabaseStore) -> None:
        Calls(store, limit("10/s")).take(at=NOON)
        ((_, expires),) = rows(store).values()
        assert expires > (time.time() + 500) * SECOND

    def test_expired_ones_are_swept_now_and_then(
        self, store: DatabaseStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keep = Calls(store, limit("10/h"))
        keep.take(10, at=None)
        for _ in range(30):
            Calls(store, limit("10/m")).take(at=None)
        sql(store, "UPDATE ratelimits_storerow SET expires_at = 17 WHERE key <> %s",
            store.make_key(keep.subject))  # fmt: skip
        assert len(rows(store)) == 31
        monkeypatch.setattr(database, "SWEEP_EVERY", 1)
        monkeypatch.setattr(database, "token_bytes", bytes)
        monkeypatch.setattr(database, "_digest", lambda text: "")
        keep.peek(at=None)
        monkeypatch.undo()
        assert list(rows(store)) == [store.make_key(keep.subject)]
        assert not keep.take(at=None).allowed

    def test_a_sweep_is_bounded(
        self, store: DatabaseStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for _ in range(10):
            Calls(store, limit("10/m")).take(at=None)
        sql(store, "UPDATE ratelimits_storerow SET expires_at = 17")
        with store._table() as table:
            table.sweep("", 4)
        assert len(rows(store)) == 6
        with store._table() as table:
            table.sweep("~", 100)
        assert len(rows(store)) == 6, "none comes after that key"

    def test_a_flood_leaves_little_behind(
        self, store: DatabaseStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of callers who come once and whose buckets are full again soon."""
        monkeypatch.setattr(database, "SWEEP_EVERY", 8)
        monkeypatch.setattr("ratelimits.stores.values.MARGIN", 0)
        for _ in range(600):
            Calls(store, limit("100000/s")).take(at=None)
        assert len(rows(store)) < 300

    def test_versions(self, store: DatabaseStore) -> None:
        calls = Calls(store, limit("10/h"))
        group = Group(calls.group.slots, (("plans", "a"), ("tenant", "")))
        assert store.versions(["plans", "tenant"]) == ("", "")
        assert store.run(Operation.TAKE, group, [1]).stale is None
        store.set_versions({"plans": "b", "else": "x"}, 60)
        assert store.versions(["else", "plans"]) == ("x", "b")
        for operation in (Operation.TAKE, Operation.PEEK):
            assert store.run(operation, group, [1]).stale == ("b", "")
        assert left(calls.peek(at=None)) == {"limit": 9}
        sql(store, "UPDATE ratelimits_storerow SET expires_at = 17")
        assert store.versions(["plans"]) == ("",)
        assert store.run(Operation.TAKE, group, [1]).stale is None

    def test_reset_forgets_one_caller_only(self, store: DatabaseStore) -> None:
        one, two = one_of_each(store), one_of_each(store)
        assert one.take(10).allowed
        assert two.take(10).allowed
        store.reset(one.group)
        assert one.take(10).allowed
        assert not two.take().allowed
        store.reset(Group(()), [two.subject])
        assert two.take(10).allowed


class TestConnections:
    def test_threads_share_a_few(self, store: DatabaseStore) -> None:
        calls = [Calls(store, limit("1000/h")) for _ in range(40)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda one: [one.take(at=None) for _ in range(5)], calls))
        assert 1 <= len(store.own._idle) <= 8

    def test_the_projects_own_is_not_used(self, store: DatabaseStore) -> None:
        """Nor are its settings changed."""
        Calls(store, limit("10/h")).take()
        normal = connections[store.own.alias]
        assert normal.connection is None
        assert normal.settings_dict["OPTIONS"] == {}

    def test_one_that_failed_is_not_used_again(self, store: DatabaseStore) -> None:
        calls = Calls(store, limit("10/h"))
        calls.take()
        with pytest.raises(StoreUnavailable), store._table() as table:
            table.cursor.execute("SELECT nonsense")
        assert not store.own._idle
        assert left(calls.take()) == {"limit": 8}

    def test_in_tests_none_stays_open(
        self, store: DatabaseStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Or else the test database could not be dropped."""
        monkeypatch.setattr("ratelimits.stores.database_connections.in_tests", lambda: True)
        normal = connections[store.own.alias]
        if normal.vendor == "postgresql":
            Calls(store, limit("10/h")).take()
            assert not store.own._idle
            assert normal.connection is None


@pytest.fixture(params=["postgresql", "sqlite"])
def project(request: pytest.FixtureRequest, start_server: Any, tmp_path: Path) -> dict[str, Any]:
    settings = settings_for(request.param, start_server, tmp_path)
    run_processes(migrate, 1, settings=settings)
    return settings


def test_forked_processes_have_connections_of_their_own(project: dict[str, Any]) -> None:
    assert run_processes(fork_and_take, 1, new_subject(), settings=project) == [[100, 100]]


def fork_and_take(index: int, subject: str) -> list[int]:
    """Two processes from one, which has used its connection already. How many takes each did."""
    store = the_store()
    group = Group(slots([subject, "500/w", "own", "token_bucket", "tenant"]))
    store.run(Operation.TAKE, group, [100])
    reading, writing = os.pipe()
    child = os.fork()
    allowed = sum(store.run(Operation.TAKE, group, [1]).allowed for _ in range(100))
    if not child:
        os.write(writing, str(allowed).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return [allowed, int(os.read(reading, 10))]
