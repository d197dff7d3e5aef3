"""The statements of PostgreSQL, by the server's clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .database_tables import MissingRows, Read, Table, marks
from .values import Write

NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class PostgreSQLTable(Table):
    """Two commands for a take: all statements of a transaction's half travel together."""

    def _begin(self) -> str:
        """Set for the transaction only, since a pooler may share the session with others."""
        wait = max(1, int(self.timeout * 1000))
        return (
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
            f"SET LOCAL lock_timeout = {wait}; SET LOCAL statement_timeout = {2 * wait}; "
            "SET LOCAL synchronous_commit = off; "
        )

    def read(self, keys: Sequence[str], versions: Sequence[str], lock: bool) -> Read:
        columns = f"SELECT {self.key}, {self.value}"
        parts, parameters = [], [*keys, *versions]
        begin = self._begin() if lock and self.is_own else ""
        if keys:
            suffix = f" ORDER BY {self.key} FOR UPDATE" if lock else ""
            begin += (
                f"WITH locked AS MATERIALIZED ({columns} FROM {self.name} "
                f"WHERE {self.key} IN ({marks(keys)}){suffix}) "
            )
            parts.append(f"{columns}, 0 FROM locked")
        if versions:
            condition = f"{self.key} IN ({marks(versions)}) AND {self.expires} > {NOW}"
            parts.append(f"{columns}, 0 FROM {self.name} WHERE {condition}")
        # The last part, so that the time is that at which all rows are locked.
        parts.append(f"SELECT '', ''::bytea, {NOW}")
        self.cursor.execute(begin + " UNION ALL ".join(parts), parameters)
        return self._fetch(keys if lock else ())

    def _fetch(self, locked: Sequence[str]) -> Read:
        while self.cursor.description is None and self.cursor.nextset():
            pass
        *rows, (_, _, now) = self.cursor.fetchall()
        values = {key: bytes(value) for key, value, _ in rows}
        if any(key not in values for key in locked):
            raise MissingRows
        return Read(now, values)

    def write(self, writes: Iterable[Write], now: int) -> None:
        statements, parameters = [], []
        for key, value, lifetime in writes:
            statements.append(self.update)
            parameters += [value, now + lifetime, key]
        if self.is_own:
            statements.append("COMMIT")
        if statements:
            self.cursor.execute("; ".join(statements), parameters)

    def end(self) -> None:
        if self.is_own:
            self.cursor.execute("COMMIT")

    def cancel(self) -> None:
        if self.is_own:
            self.cursor.execute("ROLLBACK")

    def sweep(self, start: str, most: int) -> None:
        """A row that somebody has locked is in use again."""
        some = f"SELECT {self.key} FROM {self.name} WHERE {self.key} >= %s ORDER BY {self.key}"
        old = (
            f"SELECT {self.key} FROM {self.name} WHERE {self.key} IN ({some} LIMIT {most}) "
            f"AND {self.expires} < {NOW} FOR UPDATE SKIP LOCKED"
        )
        self.cursor.execute(
            f"WITH old AS ({old}) DELETE FROM {self.name} WHERE {self.key} IN (TABLE old)",
            [start],
        )
