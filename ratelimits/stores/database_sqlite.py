"""The statements of SQLite."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from ratelimits.clock import microseconds

from .database_tables import Read, Table

# The longest pause, in seconds, before a locked file is tried again.
PAUSE = 0.001


class PatientCursor:
    """Tries again while the file is locked.

    SQLite's own way of waiting pauses for longer each time, so that whoever has waited for
    long is overtaken by whoever comes.
    """

    def __init__(self, cursor: Any, timeout: float) -> None:
        self._cursor = cursor
        self._timeout = timeout
        self.fetchall = cursor.fetchall

    def execute(self, statement: str, parameters: Sequence[Any] | None = None) -> None:
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                self._cursor.execute(statement, parameters)
                return
            except OperationalError as error:
                if "is locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0, PAUSE))


class SQLiteTable(Table):
    """SQLite locks the whole file instead of rows, so that none need to exist."""

    def __init__(
        self, connection: BaseDatabaseWrapper, cursor: Any, timeout: float, is_own: bool
    ) -> None:
        patient = PatientCursor(cursor, timeout) if is_own else cursor
        super().__init__(connection, patient, timeout, is_own)

    def begin(self) -> None:
        if self.is_own:
            self.cursor.execute("BEGIN IMMEDIATE")
        else:
            # Only a write locks the file, and that must be before anything is read.
            self.cursor.execute(f"DELETE FROM {self.name} WHERE {self.key} = ''")

    def read(self, keys: Sequence[str], versions: Sequence[str], lock: bool) -> Read:
        if lock:
            self.begin()
        values = self._select(keys, "")
        now = microseconds()
        values.update(self._select(versions, "", f" AND {self.expires} > {now}"))
        return Read(now, values)

    @property
    def update(self) -> str:
        columns = f"{self.value}, {self.expires}, {self.key}"
        return f"INSERT OR REPLACE INTO {self.name} ({columns}) VALUES (%s, %s, %s)"

    def end(self) -> None:
        if self.is_own:
            self.cursor.execute("COMMIT")

    def cancel(self) -> None:
        if self.is_own:
            self.cursor.execute("ROLLBACK")
