"""Usage in stores that only know keys and values: a table is a number of values.

Each holds those fields that begin with some of the bytes there are, so that who writes for one
caller writes little, and few wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import Struct, error
from typing import Protocol

from .usage import Pages, Tables, Wanted
from .usage_entries import REST, of_hour, of_minute

PARTS = 16
SIZES = Struct(">HI")
# Makes a value anew, of what it was and of those that were made before it.
Make = Callable[[str, "bytes | None", Mapping[str, bytes]], bytes]


class Values(Protocol):
    """What is asked of a store."""

    def make_key(self, key: str) -> str: ...

    def change(self, seconds: Mapping[str, int], make: Make) -> None:
        """Make the values of these keys anew, in this order; each is kept for so many seconds.

        All or none of them if the store can do so. Else it raises PartUnavailable if only some
        of them were changed.
        """

    def values(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """The values that there are."""


class ValueTables(Tables):
    """Tables in values of a store."""

    def __init__(self, store: Values) -> None:
        self._store = store

    def _key(self, table: str, field: bytes) -> str:
        return self._part(table, field[0] % PARTS)

    def _part(self, table: str, part: int) -> str:
        return self._store.make_key(f"{table}:{part}")

    def add(self, pages: Pages, entries: Mapping[bytes, bytes]) -> tuple[int, int]:
        """See Tables.add(). How many there are is told by those parts that were written to."""
        shares: dict[str, dict[bytes, bytes]] = {}
        minutes: dict[str, str] = {}
        for field, more in entries.items():
            minute, hour = self._key(pages.minute, field), self._key(pages.hour, field)
            shares.setdefault(minute, {})[field] = more
            minutes[hour] = minute
        sizes: dict[str, int] = {}

        def make(key: str, value: bytes | None, made: Mapping[str, bytes]) -> bytes:
            fields = unpacked(value)
            minute = minutes.get(key)
            counted = unpacked(made[minute]) if minute is not None else {}
            for field, more in shares[minute or key].items():
                if minute is None:
                    fields[field] = of_minute(fields.get(field), field, more)
                else:
                    fields[field] = of_hour(fields.get(field), field, more, counted[field])
            sizes[key] = len(fields)
            return packed(fields)

        of_minutes = dict.fromkeys(sorted(shares), pages.minute_seconds)
        of_hours = dict.fromkeys(sorted(minutes), pages.hour_seconds)
        self._store.change(of_minutes | of_hours, make)
        return _size(sizes, of_minutes), _size(sizes, of_hours)

    def read(self, wanted: Sequence[Wanted]) -> list[dict[bytes, bytes]]:
        keys = [self._keys(table, fields) for table, fields in wanted]
        values = self._store.values(list(dict.fromkeys(key for some in keys for key in some)))
        found = []
        for (_, fields), some in zip(wanted, keys, strict=True):
            table: dict[bytes, bytes] = {}
            for key in some:
                table.update(unpacked(values.get(key)))
            if fields is not None:
                table = {field: table[field] for field in fields if field in table}
            found.append(table)
        return found

    def _keys(self, table: str, fields: tuple[bytes, ...] | None) -> list[str]:
        if fields is None:
            return [self._part(table, part) for part in range(PARTS)]
        return sorted({self._key(table, field) for field in fields})

    def drop(self, table: str, seconds: int, fields: Sequence[bytes]) -> None:
        keys = sorted({self._key(table, field) for field in (*fields, REST)})

        def make(key: str, value: bytes | None, made: Mapping[str, bytes]) -> bytes:
            kept = unpacked(value)
            for field in fields:
                kept.pop(field, None)
            if key == self._key(table, REST):
                kept.setdefault(REST, b"")
            return packed(kept)

        self._store.change(dict.fromkeys(keys, seconds), make)


def _size(sizes: Mapping[str, int], keys: Mapping[str, int]) -> int:
    return sum(sizes[key] for key in keys) * PARTS // max(1, len(keys))


def packed(fields: Mapping[bytes, bytes]) -> bytes:
    """The fields of a part as one value."""
    pairs = (SIZES.pack(len(field), len(value)) + field + value for field, value in fields.items())
    return b"".join(pairs)


def unpacked(value: bytes | None) -> dict[bytes, bytes]:
    """The fields in a value; those before its end if it was cut short."""
    fields: dict[bytes, bytes] = {}
    rest = value or b""
    at = 0
    while at < len(rest):
        try:
            of_field, of_value = SIZES.unpack_from(rest, at)
        except error:
            break
        start = at + SIZES.size
        middle, at = start + of_field, start + of_field + of_value
        if at <= len(rest):
            fields[rest[start:middle]] = rest[middle:at]
    return fields
