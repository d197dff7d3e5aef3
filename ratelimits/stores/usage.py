"""Where stores keep what was asked and refused: a table for each minute and each hour."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from .usage_entries import REST, of_hour, of_minute


class Pages(NamedTuple):
    """The tables of a minute and of its hour by their names, and for how many seconds they stay."""

    minute: str
    hour: str
    minute_seconds: int
    hour_seconds: int


class Wanted(NamedTuple):
    """What to read of a table: some of its fields, or all of them."""

    table: str
    fields: tuple[bytes, ...] | None = None


class Tables(ABC):
    """Tables of entries (see usage_entries.py) by their fields.

    Every method may raise StoreUnavailable or StoreError. `thrift` is by how much fewer callers are
    to be kept than elsewhere.
    """

    thrift = 1

    @abstractmethod
    def add(self, pages: Pages, entries: Mapping[bytes, bytes]) -> tuple[int, int]:
        """Count entries in a minute and its hour, all or none. How many fields each has now."""

    @abstractmethod
    def read(self, wanted: Sequence[Wanted]) -> list[dict[bytes, bytes]]:
        """The fields that there are, in one round trip."""

    @abstractmethod
    def drop(self, table: str, seconds: int, fields: Sequence[bytes]) -> None:
        """Forget fields of a table, and that there were more is remembered in REST.

        The table stays for so many seconds from now on.
        """


class MemoryTables(Tables):
    """In this process's memory, behind a lock."""

    # Objects take more room than a server's bytes, and each process has its own.
    thrift = 5

    def __init__(self) -> None:
        self._lock = Lock()
        self._tables: dict[str, dict[bytes, bytes]] = {}
        self._ends: dict[str, float] = {}

    def add(self, pages: Pages, entries: Mapping[bytes, bytes]) -> tuple[int, int]:
        with self._lock:
            minute = self._table(pages.minute, pages.minute_seconds)
            hour = self._table(pages.hour, pages.hour_seconds)
            for field, more in entries.items():
                minute[field] = of_minute(minute.get(field), field, more)
                hour[field] = of_hour(hour.get(field), field, more, minute[field])
            return len(minute), len(hour)

    def _table(self, name: str, seconds: int) -> dict[bytes, bytes]:
        now = time.time()
        if name not in self._tables:
            for over in [other for other, end in self._ends.items() if end <= now]:
                del self._tables[over], self._ends[over]
        self._ends[name] = now + seconds
        return self._tables.setdefault(name, {})

    def read(self, wanted: Sequence[Wanted]) -> list[dict[bytes, bytes]]:
        with self._lock:
            return [self._read(table, fields) for table, fields in wanted]

    def _read(self, name: str, fields: tuple[bytes, ...] | None) -> dict[bytes, bytes]:
        table = self._tables.get(name, {})
        if fields is None:
            return dict(table)
        return {field: table[field] for field in fields if field in table}

    def drop(self, table: str, seconds: int, fields: Sequence[bytes]) -> None:
        with self._lock:
            kept = self._tables.get(table, {})
            for field in fields:
                kept.pop(field, None)
            kept.setdefault(REST, b"")
