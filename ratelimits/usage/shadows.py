"""What limits in shadow would have refused, and whom."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ratelimits.stores.usage import Wanted
from ratelimits.stores.usage_entries import ALL, PEAK, REST, label_of, split_label, unpacked

from .pages import HOUR, MINUTE, hour_page, minute_page, moment, now, owner_of
from .reading import counts_of, read
from .values import NONE, Counts, Top, Used

Table = Mapping[bytes, bytes]
MINUTES, HOURS = 60, 24
# Callers are known of so many hours of the clock, this one included: their tables are large.
RECENT = 2
# Whether a value has a line with a third number that is not 0: most have none.
WOULD_REFUSE = re.compile(rb"\[[-0-9]+,[-0-9]+,-?[1-9]")


@dataclass(frozen=True)
class Shadow:
    """Requests that a limit in shadow would have refused.

    Of the last hour, of the last day (hours of the clock, this one included), and whose most of
    them were lately.
    """

    hour: int
    day: int
    top: Top


def shadows(limits: Sequence[str], count: int = 5) -> dict[str, Shadow]:
    """By the names of limits, in one round trip. May raise StoreUnavailable."""
    if not limits:
        return {}
    minute, hour = now() // MINUTE, now() // HOUR
    of_all = [minute_page(minute - ago) for ago in range(MINUTES)]
    of_all += [hour_page(hour - ago) for ago in range(HOURS)]
    recent = [Wanted(hour_page(hour - ago)) for ago in range(RECENT)]
    tables = read([*(Wanted(page, (ALL,)) for page in of_all), *recent])
    last_hour = _by_limit(tables[:MINUTES])
    last_day = _by_limit(tables[MINUTES : len(of_all)])
    # As they are called there.
    keys = [split_label(label_of(limit, ""))[0] for limit in limits]
    tops = _tops(tables[len(of_all) :], moment((hour - RECENT + 1) * HOUR), keys, count)
    return {
        name: Shadow(last_hour.get(key, 0), last_day.get(key, 0), tops[key])
        for name, key in zip(limits, keys, strict=True)
    }


def _by_limit(tables: Sequence[Table]) -> dict[str, int]:
    """What all callers together would have been refused."""
    sums: dict[str, int] = {}
    for table in tables:
        for limit, counts in _lines(table.get(ALL)):
            sums[limit] = sums.get(limit, 0) + counts.shadow
    return sums


def _tops(
    tables: Sequence[Table], since: datetime, limits: Sequence[str], count: int
) -> dict[str, Top]:
    sums: dict[str, dict[bytes, Counts]] = {limit: {} for limit in limits}
    for table in tables:
        for field, value in table.items():
            if field in (ALL, REST) or not WOULD_REFUSE.search(value):
                continue
            for limit, counts in _lines(value):
                if limit in sums:
                    sums[limit][field] = sums[limit].get(field, NONE).plus(counts)
    is_cut = any(REST in table for table in tables)
    return {limit: Top(since, tuple(_used(sums[limit], count)), is_cut) for limit in limits}


def _lines(value: bytes | None) -> Iterator[tuple[str, Counts]]:
    """Each limit that would have refused, once for each scope."""
    for label, numbers in unpacked(value).items():
        if label and not label.startswith(PEAK):
            counts = counts_of(numbers)
            if counts.shadow:
                yield split_label(label)[0], counts


def _used(sums: Mapping[bytes, Counts], count: int) -> Iterator[Used]:
    ranked = sorted(sums.items(), key=lambda pair: -pair[1].shadow)
    for field, counts in ranked[:count]:
        owner = owner_of(field)
        if owner is not None:
            yield Used(owner, counts)
