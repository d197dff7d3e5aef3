"""The time of a line, however it is written, in whole microseconds since the epoch."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation

SECOND = 1_000_000
# Of the seconds that were met; many lines have the same one.
MOST_KEPT = 100_000

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_COMMON = re.compile(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)")
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?"
    r"\s*(?:(?:Z|z|UTC)|([+-])(\d\d)(?::?(\d\d))?)?"
)
_DECIMAL = re.compile(r"(\d{1,11})\.(\d{1,9})")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def clock() -> Callable[[str | int | None], int | None]:
    """A function from a time as it is written to microseconds; None for what is no time.

    It knows the form of nginx and Apache, ISO 8601 (UTC if no zone is given), and numbers since
    the epoch: seconds with or without a fraction, or as many milli-, micro- or nanoseconds as can
    only be those.
    """
    kept: dict[str | int | None, int | None] = {}

    def read(text: str | int | None) -> int | None:
        at = kept.get(text)
        if at is None:
            at = _read(text)
            if len(kept) >= MOST_KEPT:
                kept.clear()
            kept[text] = at
        return at

    return read


def _read(text: str | int | None) -> int | None:
    if text is None:
        return None
    if isinstance(text, int):
        return _scaled(text)
    match = _DECIMAL.fullmatch(text)
    if match:
        return int(match[1]) * SECOND + _fraction(match[2])
    try:
        return _common(text) or _iso(text) or _scaled(Decimal(text))
    except (ValueError, OverflowError, InvalidOperation):
        return None


def _fraction(digits: str) -> int:
    return int(digits[:6].ljust(6, "0"))


def _scaled(number: int | Decimal) -> int | None:
    """From seconds, or whatever smaller unit makes it a time of this era."""
    if not 0 <= number < 10**20:
        return None
    for most, unit in ((10**11, SECOND), (10**14, 1000), (10**17, 1)):
        if number < most:
            return int(number * unit)
    return int(number) // 1000


def _common(text: str) -> int | None:
    match = _COMMON.fullmatch(text)
    if match is None:
        return None
    day, month, year, hour, minute, second, *zone = match.groups()
    date = datetime(int(year), _MONTHS.index(month) + 1, int(day))
    return _microseconds(date + _since_midnight(hour, minute, second), *zone)


def _iso(text: str) -> int | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    date, hour, minute, second, fraction, *zone = match.groups("0")
    local = datetime.fromisoformat(date) + _since_midnight(hour, minute, second)
    return _microseconds(local, *zone) + _fraction(fraction)


def _since_midnight(hour: str, minute: str, second: str) -> timedelta:
    """Also in the second 60, by which a minute may be longer."""
    if int(hour) > 23 or int(minute) > 59 or int(second) > 60:
        raise ValueError(f"{hour}:{minute}:{second} is no time of a day.")
    return timedelta(hours=int(hour), minutes=int(minute), seconds=int(second))


def _microseconds(local: datetime, sign: str, hours: str, minutes: str) -> int:
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    utc = local.replace(tzinfo=timezone.utc) - (-offset if sign == "-" else offset)
    return (utc - _EPOCH) // timedelta(microseconds=1)
