"""Who did most, and who is refused, of all callers. Every reader may raise StoreUnavailable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import Literal

from ratelimits.stores.usage import Wanted
from ratelimits.stores.usage_entries import (
    ALL,
    NUMBERS,
    PEAK,
    REST,
    label_of,
    split_label,
    total_in,
    unpacked,
)

from .pages import HOUR, MINUTE, MINUTES_KEPT, hour_page, minute_page, moment, now, owner_of
from .reading import counts_of, read
from .values import Line, Refusal, Top, Used

# A caller's field, and the label of a limit.
Key = tuple[bytes, str]
By = Literal["requests", "allowed", "refused", "shadow", "units"]
# So many times the callers that are shown are looked at more closely; and whether a value has a
# line with a second number that is not 0: most have none.
LOOKED_AT = 5
REFUSED = re.compile(rb"\[[-0-9]+,-?[1-9]")


def top(count: int = 20, hours: int = 2, by: By = "requests", limit: str = "") -> Top:
    """Who did most within the last so many hours of the clock, this one included.

    With the name of a `limit`, who did most of what that limit counted.
    """
    current = now() // HOUR
    tables = read([Wanted(hour_page(current - ago)) for ago in range(hours)])
    sums: dict[bytes, list[int]] = {}
    for table in tables:
        for field, value in table.items():
            if field not in (ALL, REST):
                found = sums.setdefault(field, [0] * NUMBERS)
                for place, number in enumerate(_of_limit(value, limit)):
                    found[place] += number
    ranked = sorted(sums.items(), key=lambda pair: -_rank(pair[1], by))
    callers = [
        Used(owner, counts_of(numbers))
        for field, numbers in ranked[:count]
        if _rank(numbers, by) > 0 and (owner := owner_of(field)) is not None
    ]
    since = moment((current - hours + 1) * HOUR)
    return Top(since, tuple(callers), any(REST in table for table in tables))


def _of_limit(value: bytes, limit: str) -> Sequence[int]:
    """The numbers of all requests of a value, or of those that a limit counted in any scope."""
    if not limit:
        return total_in(value)
    key, sums = split_label(label_of(limit, ""))[0], [0] * NUMBERS
    if key.encode("utf-8", "replace") in value:
        for label, numbers in unpacked(value).items():
            if label and split_label(label)[0] == key:
                sums = [one + other for one, other in zip(sums, numbers, strict=True)]
    return sums


def _rank(numbers: Sequence[int], by: By) -> int:
    return int(getattr(counts_of(numbers), by))


def refused_now(minutes: int = 5, count: int = 20) -> tuple[Refusal, ...]:
    """Whom a limit refused within the last so many minutes, the most often refused first.

    It has done so without a pause of so many minutes `since` then.
    """
    current = now() // MINUTE
    numbers = range(current - minutes + 1, current + 1)
    tables = read([Wanted(minute_page(number)) for number in numbers])
    seen = [
        (field, value, number)
        for number, table in zip(numbers, tables, strict=True)
        for field, value in table.items()
        if field not in (ALL, REST) and REFUSED.search(value)
    ]
    most = _most_refused(seen, LOOKED_AT * count)
    found: dict[Key, Refusal] = {}
    for field, value, number in seen:
        for label, refusal in _refusals(field, value, number) if field in most else ():
            _join(found, (field, label), refusal)
    ranked = sorted(found, key=lambda key: -found[key].counts.refused)[:count]
    since = _since(ranked, current, minutes)
    return tuple(found[key]._replace(since=moment(since[key] * MINUTE)) for key in ranked)


def _since(keys: Sequence[Key], current: int, pause: int) -> dict[Key, int]:
    """The minute since which each is refused without a pause of so many minutes."""
    fields = tuple(dict.fromkeys(field for field, _ in keys))
    numbers = range(current, current - MINUTES_KEPT, -1)
    tables = read([Wanted(minute_page(number), fields) for number in numbers]) if keys else []
    since: dict[Key, int] = {}
    for number, table in zip(numbers, tables, strict=False):
        entries = {field: unpacked(value) for field, value in table.items()}
        for field, label in keys:
            refused = entries.get(field, {}).get(label, [0, 0])[1] > 0
            if refused and since.get((field, label), current) - number <= pause:
                since[field, label] = number
    return since


def _most_refused(seen: Sequence[tuple[bytes, bytes, int]], count: int) -> set[bytes]:
    """Whose requests were refused most often, by whatever limit: to look at all takes long."""
    sums: dict[bytes, int] = {}
    for field, value, _ in seen:
        sums[field] = sums.get(field, 0) + total_in(value)[1]
    return set(nlargest(count, sums, key=lambda field: sums[field]))


def _refusals(field: bytes, value: bytes, minute: int) -> Iterator[tuple[str, Refusal]]:
    owner, at = owner_of(field), moment(minute * MINUTE)
    for label, numbers in unpacked(value).items():
        counts = counts_of(numbers)
        if owner and label and not label.startswith(PEAK) and counts.refused:
            yield label, Refusal(owner, Line(*split_label(label)), counts, at, at)


def _join(found: dict[Key, Refusal], key: Key, refusal: Refusal) -> None:
    before = found.get(key)
    if before is not None:
        counts = before.counts.plus(refusal.counts)
        refusal = refusal._replace(counts=counts, since=before.since)
    found[key] = refusal
