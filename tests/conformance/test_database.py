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
from django.db import connections, transaction

from ratelimits.algorithms import Operation
from ratelimits.exceptions import StoreBusy, StoreUnavailable
from ratelimits.stores import database
from ratelimits.stores.base import Group
from ratelimits.stores.database import DatabaseStore
from ratelimits.stores.guarded import GuardedStore
from tests.processes import run_processes
from tests.servers import PostgreSQLServer

from .examples import ALGORITHMS
from .shared import migrate, settings_for, slots, the_store
from .stores import (
    NOON,
    SECOND,
    Calls,
    close,
    database_store,
    left,
    limit,
    new_subject,
    postgresql_store,
    sqlite_store,
)


@pytest.fixture
def on_postgresql(
    postgresql_server: PostgreSQLServer, really_connecting: Any
) -> Iterator[DatabaseStore]:
    """Empty; the server itself is `postgresql_server`."""
    with really_connecting():
        store = postgresql_store(postgresql_server)
        yield store
        close(store)


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


def sql(store: DatabaseStore, query: str, *parameters: Any) -> list[Any]:
    """What the store's own connections see."""
    with store.own.lent() as connection, connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return list(cursor.fetchall()) if cursor.description else []


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
        assert len(value) == 1 + 4 * 50 + 12, "and one hit of the log"
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


class TestPostgreSQL:
    def test_the_table_has_no_log_and_room_for_updates(self, on_postgresql: DatabaseStore) -> None:
        query = "SELECT relpersistence, reloptions FROM pg_class WHERE oid = %s::regclass"
        ((persistence, options),) = sql(on_postgresql, query, "ratelimits_storerow")
        assert persistence in ("u", b"u")
        assert options == ["fillfactor=50"]

    def test_the_servers_clock_counts(
        self, on_postgresql: DatabaseStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("time.time_ns", lambda: 17)
        answer = on_postgresql.run(Operation.TAKE, Calls(on_postgresql, limit("10/h")).group, [1])
        assert abs(answer.now / SECOND - time.time()) < 5

    def test_a_take_is_two_commands(
        self, on_postgresql: DatabaseStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = Calls(on_postgresql, *(limit("100/h", f"limit {n}") for n in range(4)))
        monkeypatch.setattr(database, "SWEEP_EVERY", 10**9)
        calls.take()
        with on_postgresql.own.lent() as connection:
            connection.force_debug_cursor = True
        calls.take()
        assert len(connection.queries_log) == 2
        calls.peek()
        assert len(connection.queries_log) == 3

    def test_a_pooler_may_share_the_session(self, on_postgresql: DatabaseStore) -> None:
        """Nothing that is set stays set."""
        before = sql(on_postgresql, "SELECT name, setting FROM pg_settings ORDER BY name")
        Calls(on_postgresql, limit("10/h")).take()
        assert sql(on_postgresql, "SELECT name, setting FROM pg_settings ORDER BY name") == before

    @pytest.mark.parametrize(
        "options",
        [{"pool": True}, {"isolation_level": 4}, {"server_side_binding": True}, {}],
    )
    def test_options_of_the_alias(
        self,
        options: dict[str, Any],
        postgresql_server: PostgreSQLServer,
        on_postgresql: DatabaseStore,
    ) -> None:
        store = database_store(postgresql_server.settings(**options), 5)
        calls = Calls(store, limit("10/h"))
        assert calls.take(10).allowed
        assert not calls.take().allowed
        close(store)

    def test_a_lock_that_somebody_holds(
        self, postgresql_server: PostgreSQLServer, on_postgresql: DatabaseStore, settings: Any
    ) -> None:
        settings.RATELIMITS = {"STORE_FAILURE": "deny"}
        on_postgresql.timeout = 0.1
        calls = Calls(on_postgresql, limit("10/h"))
        other = Calls(on_postgresql, limit("10/h"))
        calls.take()
        with postgresql_server.connect() as holder:
            holder.execute("BEGIN")
            holder.execute("SELECT 1 FROM ratelimits_storerow FOR UPDATE")
            started = time.monotonic()
            with pytest.raises(StoreBusy, match="lock"):
                calls.take()
            assert 0.09 < time.monotonic() - started < 2
            assert other.take().allowed, "nobody else waits"
            assert calls.peek().allowed, "and looking needs no lock"
            guarded = GuardedStore(on_postgresql)
            assert guarded.run(Operation.TAKE, calls.group, [1]).unavailable
            assert not guarded.breaker.is_open
        assert left(calls.take()) == {"limit": 8}

    def test_a_server_that_does_not_answer(
        self, postgresql_server: PostgreSQLServer, really_connecting: Any
    ) -> None:
        with really_connecting():
            store = postgresql_store(postgresql_server, timeout=0.05)
            calls = Calls(store, limit("10/h"))
            assert calls.take().allowed
            postgresql_server.stop()
            started = time.monotonic()
            with pytest.raises(StoreUnavailable, match=r"does not answer$"):
                calls.take()
            assert time.monotonic() - started < 1
            postgresql_server.cont()
            assert left(calls.take())["limit"] in (7, 8)
            close(store)

    def test_an_idle_connection_that_was_closed(
        self, postgresql_server: PostgreSQLServer, on_postgresql: DatabaseStore
    ) -> None:
        """By the server, or a firewall. Looked at before it is used again."""
        calls = Calls(on_postgresql, limit("10/h"))
        calls.take()
        ((pid,),) = sql(on_postgresql, "SELECT pg_backend_pid()")
        with postgresql_server.connect() as other:
            other.execute("SELECT pg_terminate_backend(%s)", [pid])
        idle = on_postgresql.own._idle
        idle.append(idle.pop()._replace(since=time.monotonic() - 60))
        assert left(calls.take()) == {"limit": 8}

    def test_after_a_crash_all_buckets_are_full(
        self, postgresql_server: PostgreSQLServer, on_postgresql: DatabaseStore
    ) -> None:
        calls = Calls(on_postgresql, limit("10/h"))
        assert calls.take(10).allowed
        postgresql_server.kill()
        with pytest.raises(StoreUnavailable):
            calls.take()
        postgresql_server.start()
        assert calls.take(10).allowed

    def test_the_transaction_of_a_test_takes_its_counts_back(
        self, on_postgresql: DatabaseStore
    ) -> None:
        calls = Calls(on_postgresql, limit("10/h"))
        calls.take()
        # What a TestCase begins, and marks so.
        alias = on_postgresql.own.alias
        around: Any = transaction.atomic(using=alias)
        around._from_testcase = True
        with around:
            assert left(calls.take(3)) == {"limit": 6}
            on_postgresql.set_versions({"plans": "b"}, 60)
            transaction.set_rollback(True, using=alias)
        assert left(calls.peek()) == {"limit": 9}
        assert on_postgresql.versions(["plans"]) == ("",)

    def test_without_its_table(
        self, postgresql_server: PostgreSQLServer, really_connecting: Any
    ) -> None:
        with really_connecting():
            entry = {**postgresql_server.settings(), "NAME": "template1"}
            store = database_store(entry, 5)
            with pytest.raises(StoreUnavailable, match=r"exist\. Has `manage.py migrate`"):
                Calls(store, limit("10/h")).take()
            with pytest.raises(StoreUnavailable, match="migrate"):
                store.versions(["a"])
            close(store)


class TestSQLite:
    @pytest.fixture
    def on_sqlite(self, really_connecting: Any) -> Iterator[DatabaseStore]:
        with really_connecting():
            store = sqlite_store()
            yield store
            close(store)

    def test_the_counts_have_a_file_of_their_own(self, on_sqlite: DatabaseStore) -> None:
        Calls(on_sqlite, limit("10/h")).take()
        name = connections.settings[on_sqlite.own.alias]["NAME"]
        assert Path(f"{name}-ratelimits").exists()
        assert not Path(name).exists()
        assert sql(on_sqlite, "PRAGMA journal_mode") == [("wal",)]

    def test_a_transaction_of_the_request_is_not_disturbed(self, on_sqlite: DatabaseStore) -> None:
        """It has read, others count, and then it writes: in one file that would fail."""
        calls = Calls(on_sqlite, limit("10/h"))
        connection = connections[on_sqlite.own.alias]
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE orders (number int)")
            for journal in ("delete", "wal"):
                cursor.execute(f"PRAGMA journal_mode = {journal}")
                cursor.execute("BEGIN")
                cursor.execute("SELECT * FROM orders")
                assert calls.take().allowed
                cursor.execute("INSERT INTO orders VALUES (1)")
                assert calls.take().allowed
                cursor.execute("ROLLBACK")
        assert left(calls.peek()) == {"limit": 6}

    def test_without_a_write_ahead_log(self, on_sqlite: DatabaseStore) -> None:
        """As on file systems that share no memory."""
        on_sqlite.own.close()
        connection = on_sqlite.own._usable()
        assert connection is None
        sql(on_sqlite, "PRAGMA journal_mode = DELETE")
        calls = Calls(on_sqlite, limit("40/w"))

        def tries(index: int) -> int:
            one = Calls(on_sqlite, limit("40/w"), subject=calls.subject)
            return sum(one.take(at=None).allowed for _ in range(15))

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(tries, range(4))) == 40

    def test_a_lock_that_somebody_holds(self, on_sqlite: DatabaseStore) -> None:
        calls = Calls(on_sqlite, limit("10/h"))
        calls.take()
        impatient = database_store(connections.settings[on_sqlite.own.alias], 0.1)
        with on_sqlite.own.lent() as holder, holder.cursor() as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            with pytest.raises(StoreBusy, match="locked"):
                Calls(impatient, limit("10/h"), subject=calls.subject).take()
            assert 0.09 < time.monotonic() - started < 2
            cursor.execute("ROLLBACK")
        close(impatient)
        assert left(calls.take()) == {"limit": 8}

    def test_a_place_where_no_file_can_be(self, really_connecting: Any) -> None:
        with really_connecting():
            entry = {"ENGINE": "django.db.backends.sqlite3", "NAME": "/nowhere/at/all/db.sqlite3"}
            store = database_store(entry, 0.05)
            with pytest.raises(StoreUnavailable, match="unable to open database file"):
                Calls(store, limit("10/h")).take()
            close(store)

    def test_a_name_that_is_a_uri(self, really_connecting: Any, tmp_path: Path) -> None:
        with really_connecting():
            name = f"file:{tmp_path}/db.sqlite3?mode=rwc"
            store = database_store({"ENGINE": "django.db.backends.sqlite3", "NAME": name}, 5)
            assert Calls(store, limit("10/h")).take().allowed
            assert (tmp_path / "db.sqlite3-ratelimits").exists()
            close(store)
