"""What only PostgreSQL does: its clock, its locks, and a server that goes away."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from ratelimits.algorithms import Operation
from ratelimits.exceptions import StoreBusy, StoreUnavailable
from ratelimits.stores import database
from ratelimits.stores.database import DatabaseStore
from ratelimits.stores.guarded import GuardedStore
from tests.servers import PostgreSQLServer

from .stores import SECOND, Calls, close, database_store, left, limit, postgresql_store, sql


@pytest.fixture
def on_postgresql(
    postgresql_server: PostgreSQLServer, really_connecting: Any
) -> Iterator[DatabaseStore]:
    """Empty; the server itself is `postgresql_server`."""
    with really_connecting():
        store = postgresql_store(postgresql_server)
        yield store
        close(store)


def test_the_table_has_no_log_and_room_for_updates(on_postgresql: DatabaseStore) -> None:
    query = "SELECT relpersistence, reloptions FROM pg_class WHERE oid = %s::regclass"
    ((persistence, options),) = sql(on_postgresql, query, "ratelimits_storerow")
    assert persistence in ("u", b"u")
    assert options == ["fillfactor=50"]


def test_the_servers_clock_counts(
    on_postgresql: DatabaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 17)
    answer = on_postgresql.run(Operation.TAKE, Calls(on_postgresql, limit("10/h")).group, [1])
    assert abs(answer.now / SECOND - time.time()) < 5


def test_a_take_is_two_commands(
    on_postgresql: DatabaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(on_postgresql, *(limit("100/h", f"limit {n}") for n in range(4)))
    monkeypatch.setattr(database, "SWEEP_EVERY", math.inf)
    calls.take()
    with on_postgresql.own.lent() as connection:
        connection.force_debug_cursor = True
    calls.take()
    assert len(connection.queries_log) == 2
    calls.peek()
    assert len(connection.queries_log) == 3


def test_a_pooler_may_share_the_session(on_postgresql: DatabaseStore) -> None:
    """Nothing that is set stays set."""
    before = sql(on_postgresql, "SELECT name, setting FROM pg_settings ORDER BY name")
    Calls(on_postgresql, limit("10/h")).take()
    assert sql(on_postgresql, "SELECT name, setting FROM pg_settings ORDER BY name") == before


@pytest.mark.parametrize(
    "options",
    [{"pool": True}, {"isolation_level": 4}, {"server_side_binding": True}, {}],
)
def test_options_of_the_alias(
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
    postgresql_server: PostgreSQLServer, on_postgresql: DatabaseStore, settings: Any
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
        assert 0.09 < time.monotonic() - started < 10
        assert other.take().allowed, "nobody else waits"
        assert calls.peek().allowed, "and looking needs no lock"
        guarded = GuardedStore(on_postgresql)
        assert guarded.run(Operation.TAKE, calls.group, [1]).unavailable
        assert not guarded.breaker.is_open
    assert left(calls.take()) == {"limit": 8}


def test_a_server_that_does_not_answer(
    postgresql_server: PostgreSQLServer, really_connecting: Any
) -> None:
    with really_connecting():
        store = postgresql_store(postgresql_server, timeout=0.3)
        calls = Calls(store, limit("10/h"))
        assert calls.take().allowed
        postgresql_server.stop()
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"does not answer$"):
            calls.take()
        assert time.monotonic() - started < 5
        postgresql_server.cont()
        assert left(calls.take())["limit"] in (7, 8)
        close(store)


def test_an_idle_connection_that_was_closed(
    postgresql_server: PostgreSQLServer, on_postgresql: DatabaseStore
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
    postgresql_server: PostgreSQLServer, on_postgresql: DatabaseStore
) -> None:
    calls = Calls(on_postgresql, limit("10/h"))
    assert calls.take(10).allowed
    postgresql_server.kill()
    with pytest.raises(StoreUnavailable):
        calls.take()
    postgresql_server.start()
    assert calls.take(10).allowed


def test_the_transaction_of_a_test_takes_its_counts_back(on_postgresql: DatabaseStore) -> None:
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


def test_without_its_table(postgresql_server: PostgreSQLServer, really_connecting: Any) -> None:
    with really_connecting():
        entry = {**postgresql_server.settings(), "NAME": "template1"}
        store = database_store(entry, 5)
        with pytest.raises(StoreUnavailable, match=r"exist\. Has `manage.py migrate`"):
            Calls(store, limit("10/h")).take()
        with pytest.raises(StoreUnavailable, match="migrate"):
            store.versions(["a"])
        close(store)
