"""What one caller did within a minute or an hour, as one value. No I/O.

Lines of a label and its numbers, as JSON, which the servers' scripts and Python read fast. The
label `""` is that of all requests, others are a limit's name and the scope that was asked for. The
numbers are allowed, refused, and let pass though a limit in shadow would have refused: requests,
then by how much their units exceed these. All are sums, so that what several processes counted is
added up; only a peak, of an hour's busiest minute, is the highest. The script usage.lua does the
same; its numbers are exact up to 10**14.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

# SPLIT is between a limit and a scope, PEAK before the limit that it is the peak of.
PEAK, SPLIT = "\n", "\t"
NUMBERS = 6
# Special fields of a table: the sum of everybody; and that some were too many to be kept apart.
ALL, REST = b"all", b"rest"
# Lines of one caller, and of everybody; what comes later shares a line.
MOST_LINES, MOST_LINES_OF_ALL = 32, 256
OTHERS = f"…{SPLIT}"
LONGEST = 80

Entry = dict[str, list[int]]
_TOTAL = re.compile(rb'"":\[([-0-9,]+)\]')
_unwanted = {ord(mark): " " for mark in (PEAK, SPLIT)}


@lru_cache(maxsize=4096)
def label_of(limit: str, scope: str) -> str:
    """The label of a limit and a scope."""
    return f"{_clean(limit)}{SPLIT}{_clean(scope)}"


def _clean(name: str) -> str:
    # A scope may be part of a request, whose JSON can have halves of characters.
    whole = name.encode("utf-8", "replace").decode()
    return whole.translate(_unwanted)[:LONGEST]


def split_label(label: str) -> tuple[str, str]:
    """The limit and the scope of a label."""
    limit, _, scope = label.partition(SPLIT)
    return limit, scope


def packed(entry: Mapping[str, Iterable[int]]) -> bytes:
    trimmed = {label: _trimmed([*numbers]) for label, numbers in entry.items()}
    text = json.dumps(trimmed, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _trimmed(numbers: list[int]) -> list[int]:
    # A script can't tell an empty list from an empty dictionary.
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return numbers or [0]


def unpacked(value: bytes | None) -> Entry:
    """The lines of a value; none if it is not ours."""
    try:
        lines = json.loads(value) if value else {}
        return {label: _numbers(numbers) for label, numbers in lines.items()}
    except (ValueError, TypeError, AttributeError, OverflowError):
        return {}


def _numbers(numbers: list[float]) -> list[int]:
    whole = [int(number) for number in numbers[:NUMBERS]]
    return whole + [0] * (NUMBERS - len(whole))


def add(entry: Entry, more: Mapping[str, Iterable[int]], most: int = MOST_LINES) -> None:
    """Add up two entries. Peaks stay what they are."""
    for label, numbers in more.items():
        place = label if label in entry or not label or len(entry) < most else OTHERS
        found = entry.setdefault(place, [0] * NUMBERS)
        for index, number in enumerate(numbers):
            found[index] += number


def raise_peaks(hour: Entry, minute: Mapping[str, list[int]]) -> None:
    """Remember of a minute how many units each limit let pass, if no minute had more."""
    units: dict[str, int] = {}
    for label, numbers in minute.items():
        if label:
            limit = label.partition(SPLIT)[0]
            units[limit] = units.get(limit, 0) + numbers[0] + numbers[3]
    for limit, count in units.items():
        peak = hour.setdefault(PEAK + limit, [0] * NUMBERS)
        peak[0] = max(peak[0], count)


def most_lines(field: bytes) -> int:
    return MOST_LINES_OF_ALL if field == ALL else MOST_LINES


def total_in(value: bytes) -> list[int]:
    """The numbers of all requests of a value, without a look at its other lines."""
    found = _TOTAL.search(value)
    return _numbers([int(number) for number in found[1].split(b",")]) if found else [0] * NUMBERS


def of_minute(value: bytes | None, field: bytes, more: bytes) -> bytes:
    """The value of a minute, with more counted in it."""
    entry = unpacked(value)
    add(entry, unpacked(more), most_lines(field))
    return packed(entry)


def of_hour(value: bytes | None, field: bytes, more: bytes, minute: bytes) -> bytes:
    """The value of an hour, with more counted in it; `minute` is the minute's with the same."""
    entry = unpacked(value)
    add(entry, unpacked(more), 2 * most_lines(field))
    raise_peaks(entry, unpacked(minute))
    return packed(entry)
