"""The statements that read and write counts, for each kind of database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

from ratelimits.clock import microseconds
from ratelimits.models import StoreRow

from .values import SECOND, Write

# How long a row without a value is kept, which is made so that it can be locked.
PLACEHOLDER = 60 * SECOND


class Read(NamedTuple):
    """What rows hold by their keys, and the time by the clock that counts."""

    now: int
    values: Mapping[str, bytes]


class MissingRows(Exception):
    """Rows that are to be locked do not exist."""


class Table:
    """The table on one connection, of a database that locks rows: MySQL, Oracle.

    Reading with `lock` begins a transaction, which `write`, `end` or `cancel` ends. On a
    connection that is not the store's own, transactions are somebody else's affair.
    """

    def __init__(
        self, connection: BaseDatabaseWrapper, cursor: Any, timeout: float, is_own: bool
    ) -> None:
        self.connection = connection
        self.cursor = cursor
        self.timeout = timeout
        self.is_own = is_own
        quote = connection.ops.quote_name
        self.name = quote(StoreRow._meta.db_table)
        self.key, self.value, self.expires = map(quote, ("key", "value", "expires_at"))

    def read(self, keys: Sequence[str], versions: Sequence[str], lock: bool) -> Read:
        """The rows of the keys, and those of the versions that have not expired.

        Raises MissingRows if one to lock does not exist.
        """
        if lock:
            self.begin()
        values = self._select(keys, " FOR UPDATE" if lock else "")
        if lock and len(values) < len(keys):
            raise MissingRows
        now = microseconds()
        values.update(self._select(versions, "", f" AND {self.expires} > {now}"))
        return Read(now, values)

    def _select(self, keys: Sequence[str], suffix: str, condition: str = "") -> dict[str, bytes]:
        if not keys:
            return {}
        self.cursor.execute(
            f"SELECT {self.key}, {self.value} FROM {self.name} "
            f"WHERE {self.key} IN ({marks(keys)}){condition} ORDER BY {self.key}{suffix}",
            keys,
        )
        return {key: bytes(value) for key, value in self.cursor.fetchall()}

    def write(self, writes: Iterable[Write], now: int) -> None:
        """Store values in rows that were read with a lock, and end the transaction."""
        for key, value, lifetime in writes:
            self.cursor.execute(self.update, [value, now + lifetime, key])
        self.end()

    @property
    def update(self) -> str:
        assignments = f"{self.value} = %s, {self.expires} = %s"
        return f"UPDATE {self.name} SET {assignments} WHERE {self.key} = %s"

    def begin(self) -> None:
        if self.is_own:
            self.connection.set_autocommit(False)

    def end(self) -> None:
        if self.is_own:
            self.connection.commit()
            self.connection.set_autocommit(True)

    def cancel(self) -> None:
        if self.is_own:
            self.connection.rollback()
            self.connection.set_autocommit(True)

    def make_rows(self, keys: Iterable[str]) -> None:
        """Rows to lock, for keys that have none. All processes make them in the same order."""
        ops = self.connection.ops
        insert: Any = ops.insert_statement(on_conflict=OnConflict.IGNORE)
        ignore: Any = ops.on_conflict_suffix_sql([], OnConflict.IGNORE, [], [])
        columns = f"({self.key}, {self.value}, {self.expires})"
        for key in sorted(keys):
            try:
                self.cursor.execute(
                    f"{insert} {self.name} {columns} VALUES (%s, %s, %s) {ignore}",
                    [key, b"", microseconds() + PLACEHOLDER],
                )
            except IntegrityError:
                # Somebody else was faster, on a database that can't ignore it.
                continue

    def delete(self, keys: Iterable[str]) -> None:
        for key in sorted(keys):
            self.cursor.execute(f"DELETE FROM {self.name} WHERE {self.key} = %s", [key])

    def sweep(self, start: str, most: int) -> None:
        """Delete what has expired among the next so many rows from a key on."""
        limit = self.connection.ops.limit_offset_sql(0, most)
        self.cursor.execute(
            f"SELECT {self.key}, {self.expires} FROM {self.name} WHERE {self.key} >= %s "
            f"ORDER BY {self.key} {limit}",
            [start],
        )
        now = microseconds()
        expired = [key for key, expires in self.cursor.fetchall() if expires < now]
        if expired:
            self.cursor.execute(
                f"DELETE FROM {self.name} WHERE {self.key} IN ({marks(expired)}) "
                f"AND {self.expires} < %s",
                [*expired, now],
            )

    def census(self, most: int) -> tuple[int, int]:
        """How many rows there are, up to so many, and how many of those have expired."""
        limit = self.connection.ops.limit_offset_sql(0, most)
        self.cursor.execute(
            f"SELECT COUNT(*), SUM(CASE WHEN {self.expires} < %s THEN 1 ELSE 0 END) "
            f"FROM (SELECT {self.expires} FROM {self.name} {limit}) some_rows",
            [microseconds()],
        )
        ((rows, expired),) = self.cursor.fetchall()
        return rows, int(expired or 0)

    def ends(self, key: str) -> int | None:
        """When a row expires, in microseconds; None if there is none."""
        self.cursor.execute(f"SELECT {self.expires} FROM {self.name} WHERE {self.key} = %s", [key])
        found = self.cursor.fetchall()
        return int(found[0][0]) if found else None


def marks(keys: Sequence[str]) -> str:
    return ", ".join(["%s"] * len(keys))
