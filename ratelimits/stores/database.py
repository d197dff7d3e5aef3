"""The database: one short transaction for an operation, over a connection of its own."""

from __future__ import annotations

import random
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import blake2b
from secrets import token_bytes

from django.core.exceptions import ImproperlyConfigured
from django.db import Error, IntegrityError, connections, router, transaction
from django.db.utils import DataError
from django.utils.connection import ConnectionDoesNotExist

from ratelimits.algorithms import Operation
from ratelimits.clock import microseconds
from ratelimits.exceptions import InvalidStore, StoreBusy, StoreError, StoreUnavailable
from ratelimits.models import StoreRow

from . import database_facts, processes
from .base import Answer, Group
from .database_connections import OwnConnections, borrowed, in_tests
from .database_postgresql import PostgreSQLTable
from .database_sqlite import SQLiteTable
from .database_tables import MissingRows, Read, Table
from .facts import DatabaseFacts
from .gates_values import Held, MakeAll
from .stateful import stale
from .usage_values import Make
from .values import SECOND, ValueStore, Write

TABLES: dict[str, type[Table]] = {"postgresql": PostgreSQLTable, "sqlite": SQLiteTable}
# One take in so many also looks at so many rows, and deletes the expired ones among them.
SWEEP_EVERY, SWEEP_ROWS = 256, 1000
# Keys that one statement asks for.
MOST_KEYS = 500
# How often rows are made that somebody deletes again before they are locked.
TRIES = 5
# What databases say when somebody else holds a lock for too long, or a deadlock was broken, and
# when there is no table.
BUSY = ("55P03", "40P01", "is locked", "Lock wait timeout", "Deadlock found", "ORA-00060")
UNMIGRATED = ("42P01", "no such table", "doesn't exist", "ORA-00942")


class DatabaseStore(ValueStore):
    """Counts in a table of the database that the routers choose for StoreRow.

    By the server's clock on PostgreSQL, else by the process's.
    """

    @cached_property
    def own(self) -> OwnConnections:
        return OwnConnections(router.db_for_write(StoreRow), self.timeout)

    def check(self) -> None:
        """See Store.check()."""
        entry = connections.settings.get(self.own.alias)
        if entry is None or entry["ENGINE"] == "django.db.backends.dummy":
            raise InvalidStore(
                f'Counts go to the database "{self.own.alias}", which DATABASES does not have.'
            )

    @property
    def thread_sensitive(self) -> bool:
        return in_tests()

    def make_key(self, key: str) -> str:
        """As long as the column has room for, whatever the alias makes of it."""
        return _digest(super().make_key(key).encode())

    def run(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        plan, lock = self._plan(group), operation is not Operation.PEEK
        with self._table() as table:
            read = _read(table, plan.keys, tuple(plan.versions.values()), lock)
            answer = stale(group, lambda key: _text(read.values.get(plan.versions[key])))
            if answer is None:
                at = read.now if now is None else now
                answer, writes = self._count(
                    operation, group, costs, read.values, at, now is not None
                )
                if lock:
                    table.write(writes, read.now)
            elif lock:
                table.cancel()
        if random.random() * SWEEP_EVERY < 1:
            self._sweep()
        return answer

    def _sweep(self) -> None:
        """Look at some rows, from a random one on: keys are digests, and spread evenly."""
        # If it fails, the next call finds out by itself.
        with suppress(StoreUnavailable), self._table() as table:
            table.sweep(_digest(token_bytes(16)), SWEEP_ROWS)

    def versions(self, keys: Sequence[str]) -> tuple[str, ...]:
        names = tuple(self.make_key(key) for key in keys)
        with self._table() as table:
            read = table.read((), names, lock=False)
        return tuple(_text(read.values.get(name)) for name in names)

    def set_versions(self, versions: Mapping[str, str], seconds: int) -> None:
        values = {self.make_key(key): version.encode() for key, version in versions.items()}
        with self._table() as table:
            read = _read(table, tuple(values), (), lock=True)
            lifetime = seconds * SECOND
            table.write([Write(key, value, lifetime) for key, value in values.items()], read.now)

    def count_processes(self, ident: str, seconds: int) -> int:
        """See Store.count_processes()."""
        key = self.make_key(processes.key())
        with self._table() as table:
            read = _read(table, (key,), (), lock=True)
            before = read.values.get(key, b"")
            value, count = processes.announced(before, ident, read.now, seconds)
            table.write([Write(key, value, seconds * SECOND)], read.now)
        return count

    def change(self, seconds: Mapping[str, int], make: Make) -> None:
        """See usage_values.Values."""
        with self._table() as table:
            read = _read(table, tuple(sorted(seconds)), (), lock=True)
            made: dict[str, bytes] = {}
            for key in seconds:
                made[key] = make(key, read.values.get(key), made)
            table.write(
                [Write(key, value, seconds[key] * SECOND) for key, value in made.items()], read.now
            )

    def values(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """See usage_values.Values."""
        found: dict[str, bytes] = {}
        with self._table() as table:
            for start in range(0, len(keys), MOST_KEYS):
                some = tuple(keys[start : start + MOST_KEYS])
                found.update(table.read((), some, lock=False).values)
        return found

    def change_together(
        self, keys: Sequence[str], also: Sequence[str], make: MakeAll, now: int | None
    ) -> None:
        """See gates_values.BookValues."""
        with self._table() as table:
            read = _read(table, tuple(sorted(keys)), tuple(also), lock=True)
            made = make(Held(read.values, read.now if now is None else now))
            table.write([Write(key, *made[key]) for key in sorted(made)], read.now)

    def read_at(self, keys: Sequence[str]) -> Held:
        """See gates_values.BookValues."""
        with self._table() as table:
            read = table.read((), tuple(keys), lock=False)
        return Held(read.values, read.now)

    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        with self._table() as table:
            table.delete(self._names(group, subjects))

    def recent_processes(self, seconds: int) -> int:
        """See Store.recent_processes()."""
        key = self.make_key(processes.key())
        with self._table() as table:
            read = table.read((), (key,), lock=False)
        return len(processes.recent(read.values.get(key, b""), read.now, seconds))

    @property
    def address(self) -> str:
        """See Store.address."""
        alias = self.own.alias
        return database_facts.address(alias, borrowed(alias) is not None)

    def facts(self) -> DatabaseFacts:
        """See Store.facts()."""
        with self._table() as table:
            return database_facts.look(table)

    def lifetime(self, key: str) -> float | None:
        """See Store.lifetime()."""
        with self._table() as table:
            ends = table.ends(self.make_key(key))
        left = 0 if ends is None else ends - microseconds()
        return left / SECOND if left > 0 else None

    def close(self) -> None:
        """See Store.close()."""
        self.own.close()

    @contextmanager
    def _table(self) -> Iterator[Table]:
        """The table on a connection that no request's transaction is on."""
        with self._no_lost_ones(), _faults():
            alias = self.own.alias
            kind = TABLES.get(connections[alias].vendor, Table)
            connection = borrowed(alias)
            if connection is not None:
                with transaction.atomic(using=alias), connection.cursor() as cursor:
                    yield kind(connection, cursor, self.timeout, is_own=False)
                return
            with self.own.lent() as connection, connection.cursor() as cursor:
                yield kind(connection, cursor, self.timeout, is_own=True)

    @contextmanager
    def _no_lost_ones(self) -> Iterator[None]:
        """After a fault, close what lies idle: it may have ended with the one that failed."""
        try:
            yield
        except StoreUnavailable as error:
            if not isinstance(error, StoreBusy):
                self.own.close()
            raise


def _read(table: Table, keys: Sequence[str], versions: Sequence[str], lock: bool) -> Read:
    """Read rows. Those to lock that do not exist are made first, without holding any lock."""
    for _ in range(TRIES):
        try:
            return table.read(keys, versions, lock)
        except MissingRows:
            table.cancel()
            table.make_rows(keys)
    raise StoreBusy("Rows of the table of counts are deleted faster than they are made.")


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except (IntegrityError, DataError) as error:
        raise StoreError(f"The database refused to count: {_reason(error)}") from error
    except (Error, ConnectionDoesNotExist, ImproperlyConfigured) as error:
        if _is_one_of(error, BUSY):
            raise StoreBusy(f"The database is busy: {_reason(error)}") from error
        hint = ". Has `manage.py migrate` been run?" if _is_one_of(error, UNMIGRATED) else ""
        raise StoreUnavailable(f"The database can't count now: {_reason(error)}{hint}") from error


def _reason(error: Exception) -> str:
    """Without the statement, which PostgreSQL repeats."""
    return (str(error).splitlines() or [repr(error)])[0].strip()


def _is_one_of(error: Exception, known: Sequence[str]) -> bool:
    """Whether an error's state, of PostgreSQL, or its text is a known one."""
    state = getattr(error.__cause__, "sqlstate", None) or getattr(error.__cause__, "pgcode", None)
    return state in known or any(text in str(error) for text in known)


def _digest(text: bytes) -> str:
    return urlsafe_b64encode(blake2b(text, digest_size=18).digest()).decode()


def _text(value: bytes | None) -> str:
    return (value or b"").decode()
