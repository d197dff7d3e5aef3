"""What was asked and refused, read from the store. Every reader may raise StoreUnavailable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ratelimits.limits import Owner
from ratelimits.stores.usage import Wanted
from ratelimits.stores.usage_entries import (
    ALL,
    NUMBERS,
    PEAK,
    REST,
    Entry,
    split_label,
    total_in,
    unpacked,
)

from .asking import ask
from .pages import (
    HOUR,
    HOURS_KEPT,
    MINUTE,
    MINUTES_KEPT,
    field_of,
    hour_page,
    minute_page,
    moment,
    now,
)
from .values import Counts, History, Line, Peak, Point


def recent(keys: Sequence[str], minutes: int = 60, kind: str = "tenant") -> list[Counts]:
    """What each of these tenants did in the last so many minutes, this one included.

    `kind` is "address" for callers who have no tenant. One round trip for all of them.
    """
    if not keys:
        return []
    fields = tuple(field_of(Owner(kind, key)) for key in keys)
    current = now() // MINUTE
    numbers = range(current - minutes + 1, current + 1)
    # The hour has room for more callers than the minute has.
    hours = range(-(-numbers[0] * MINUTE // HOUR), current * MINUTE // HOUR + 1)
    pages = [*map(minute_page, numbers), *map(hour_page, hours)]
    found = read([Wanted(page, (*fields, REST)) for page in pages])
    cut = any(REST in table for table in found)
    of_minutes, of_hours = found[: len(numbers)], found[len(numbers) :]
    return [
        _larger(_sum(of_minutes, field), _sum(of_hours, field))._replace(at_least=cut)
        for field in fields
    ]


def history(
    key: str, hours: int = HOURS_KEPT, minutes: int = MINUTES_KEPT, kind: str = "tenant"
) -> History:
    """What one tenant did, by limit and scope, in each of the last minutes and hours."""
    return _history(field_of(Owner(kind, key)), minutes, hours)


def totals(hours: int = HOURS_KEPT, minutes: int = 60) -> History:
    """What all callers together did."""
    return _history(ALL, minutes, hours)


def peaks(keys: Sequence[str], hours: int = 24) -> list[Mapping[str, Peak]]:
    """For each tenant, by a limit's name, the most units that it let pass in a minute or an hour.

    Of the last so many hours, this one included.
    """
    if not keys:
        return []
    fields = tuple(field_of(Owner("tenant", key)) for key in keys)
    current = now() // HOUR
    tables = read([Wanted(hour_page(current - ago), fields) for ago in range(hours)])
    return [_peaks(_entries(tables, field)) for field in fields]


def _history(field: bytes, minutes: int, hours: int) -> History:
    current = now()
    of_minutes = range(current // MINUTE - minutes + 1, current // MINUTE + 1)
    of_hours = range(current // HOUR - hours + 1, current // HOUR + 1)
    wanted = (field,) if field == ALL else (field, REST)
    pages = [*map(minute_page, of_minutes), *map(hour_page, of_hours)]
    tables = read([Wanted(page, wanted) for page in pages])
    points = [
        _point(number * seconds, seconds, table, field)
        for number, seconds, table in zip(
            [*of_minutes, *of_hours], [MINUTE] * minutes + [HOUR] * hours, tables, strict=True
        )
    ]
    return History(tuple(points[:minutes]), tuple(points[minutes:]))


def _point(start: int, seconds: int, table: Mapping[bytes, bytes], field: bytes) -> Point:
    entry = unpacked(table.get(field))
    total = counts_of(entry.get("", [0] * NUMBERS))._replace(at_least=REST in table)
    lines = {
        Line(*split_label(label)): counts_of(numbers)
        for label, numbers in entry.items()
        if label and not label.startswith(PEAK)
    }
    return Point(moment(start), seconds, total, lines)


def _peaks(entries: Iterable[Entry]) -> Mapping[str, Peak]:
    by_minute: dict[str, int] = {}
    by_hour: dict[str, int] = {}
    for entry in entries:
        hour: dict[str, int] = {}
        for label, numbers in entry.items():
            if label.startswith(PEAK):
                limit = label[len(PEAK) :]
                by_minute[limit] = max(by_minute.get(limit, 0), numbers[0])
            elif label:
                limit = split_label(label)[0]
                hour[limit] = hour.get(limit, 0) + numbers[0] + numbers[3]
        for limit, units in hour.items():
            by_hour[limit] = max(by_hour.get(limit, 0), units)
    limits = {**by_hour, **by_minute}
    return {limit: Peak(by_minute.get(limit, 0), by_hour.get(limit, 0)) for limit in limits}


def _entries(tables: Iterable[Mapping[bytes, bytes]], field: bytes) -> list[Entry]:
    return [unpacked(table[field]) for table in tables if field in table]


def _sum(tables: Iterable[Mapping[bytes, bytes]], field: bytes) -> Counts:
    totals = [total_in(table[field]) for table in tables if field in table]
    return counts_of([sum(numbers) for numbers in zip(*totals, strict=True)] or [0] * NUMBERS)


def _larger(one: Counts, other: Counts) -> Counts:
    return max(one, other, key=lambda counts: counts.requests)


def counts_of(numbers: Sequence[int]) -> Counts:
    """What the numbers of a line say."""
    # What was given back may be of an earlier minute.
    allowed, refused, shadow, *beyond = numbers
    units = (allowed + beyond[0], refused + beyond[1], shadow + beyond[2])
    return Counts._make([*(max(0, number) for number in (allowed, refused, shadow, *units)), False])


def read(wanted: Sequence[Wanted]) -> list[dict[bytes, bytes]]:
    """Some tables, in one round trip. Raises StoreUnavailable."""
    return ask(lambda store: store.usage.read(wanted))
