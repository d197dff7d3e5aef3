"""Moments and durations as servers write them, in seconds from now.

Nothing here raises, whatever the text, and nothing is negative or infinite: None is a text that
means nothing, 0 a moment that is over.
"""

from __future__ import annotations

import math
import re
from datetime import timezone

from django.utils.dateparse import parse_datetime
from django.utils.http import parse_http_date

# ASCII digits only, unlike int() and float(). What is longer than nanoseconds is no number.
NUMBER = re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,9})?", re.ASCII)
# Go's durations, of which `8.64s` is one; read as a whole or not at all.
DURATION = re.compile(r"(?:[0-9]{1,15}(?:\.[0-9]{1,15})?(?:h|ms|us|µs|μs|ns|m|s))+", re.ASCII)
PART = re.compile(r"([0-9.]+)([a-zµμ]+)", re.ASCII)
SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6}
SECONDS["ns"] = 1e-9
# No duration that anybody means is this long; as seconds since 1970 it was in 2001.
FIRST_MOMENT = 10**9
# Other ways than GMT to say that a date is in UTC, which is all that an HTTP-date can be.
UTC = re.compile(r" (?:UTC|[+-]0000)$")


def seconds_until(text: str, now: float) -> float | None:
    """Seconds from `now`, the server's time since the epoch, until what a text says.

    A number is a duration in seconds, or above 1e9 a moment: in seconds since the epoch, or in
    milli-, micro- or nanoseconds if it is that long. Also Go's durations, ISO 8601 and the three
    forms of an HTTP-date (RFC 9110, section 5.6.7).
    """
    text = text.strip(" \t")
    amount = number(text)
    if amount is not None:
        return until(amount, now)
    length = duration(text)
    if length is not None:
        return length
    moment = _moment(text)
    return None if moment is None else max(0.0, moment - now)


def until(amount: float, now: float) -> float:
    """Seconds that a number means: as many, or until the moment that it is."""
    return amount if amount < FIRST_MOMENT else max(0.0, amount / _units(amount) - now)


def number(text: str) -> float | None:
    """A number as servers write them: digits, and perhaps a fraction."""
    text = text.strip(" \t")
    return float(text) if NUMBER.fullmatch(text) else None


def duration(text: str) -> float | None:
    """Seconds of a duration as Go writes them: `6m0s`, `12ms`, `1h30m`."""
    if not DURATION.fullmatch(text):
        return None
    length = sum(float(count) * SECONDS[unit] for count, unit in PART.findall(text))
    return length if math.isfinite(length) else None


def http_date(text: str) -> float | None:
    """Seconds since the epoch."""
    try:
        return float(parse_http_date(UTC.sub(" GMT", text.strip(" \t"))))
    except (ValueError, OverflowError):
        return None


def _units(amount: float) -> int:
    """How many of the units of a moment make a second, by how long the number is."""
    return next((units for units in (10**9, 10**6, 10**3) if amount >= units * FIRST_MOMENT), 1)


def _moment(text: str) -> float | None:
    found = http_date(text)
    if found is not None:
        return found
    try:
        date = parse_datetime(text)
        if date is None:
            return None
        return (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None
