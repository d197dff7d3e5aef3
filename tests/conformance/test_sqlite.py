"""What only SQLite does: a file of its own, whose lock everybody waits for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from ratelimits.exceptions import StoreBusy, StoreUnavailable
from ratelimits.stores.database import DatabaseStore

from .stores import Calls, close, database_store, left, limit, sql, sqlite_store


@pytest.fixture
def on_sqlite(really_connecting: Any) -> Iterator[DatabaseStore]:
    with really_connecting():
        store = sqlite_store()
        yield store
        close(store)


def test_the_counts_have_a_file_of_their_own(on_sqlite: DatabaseStore) -> None:
    Calls(on_sqlite, limit("10/h")).take()
    name = connections.settings[on_sqlite.own.alias]["NAME"]
    assert Path(f"{name}-ratelimits").exists()
    assert not Path(name).exists()
    assert sql(on_sqlite, "PRAGMA journal_mode") == [("wal",)]


def test_a_transaction_of_the_request_is_not_disturbed(on_sqlite: DatabaseStore) -> None:
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


def test_without_a_write_ahead_log(on_sqlite: DatabaseStore) -> None:
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


def test_a_lock_that_somebody_holds(on_sqlite: DatabaseStore) -> None:
    calls = Calls(on_sqlite, limit("10/h"))
    calls.take()
    impatient = database_store(connections.settings[on_sqlite.own.alias], 0.1)
    with on_sqlite.own.lent() as holder, holder.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        with pytest.raises(StoreBusy, match="locked"):
            Calls(impatient, limit("10/h"), subject=calls.subject).take()
        assert 0.09 < time.monotonic() - started < 10
        cursor.execute("ROLLBACK")
    close(impatient)
    assert left(calls.take()) == {"limit": 8}


def test_a_place_where_no_file_can_be(really_connecting: Any) -> None:
    with really_connecting():
        entry = {"ENGINE": "django.db.backends.sqlite3", "NAME": "/nowhere/at/all/db.sqlite3"}
        store = database_store(entry, 0.05)
        with pytest.raises(StoreUnavailable, match="unable to open database file"):
            Calls(store, limit("10/h")).take()
        close(store)


def test_a_name_that_is_a_uri(really_connecting: Any, tmp_path: Path) -> None:
    with really_connecting():
        name = f"file:{tmp_path}/db.sqlite3?mode=rwc"
        store = database_store({"ENGINE": "django.db.backends.sqlite3", "NAME": name}, 5)
        assert Calls(store, limit("10/h")).take().allowed
        assert (tmp_path / "db.sqlite3-ratelimits").exists()
        close(store)
