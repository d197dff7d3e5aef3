"""Where windows begin and end: aligned to UTC, weeks to Monday, months to the calendar."""

from __future__ import annotations

from .base import DAY, MONDAY, WEEK


def bounds(now: int, window: int) -> tuple[int, int]:
    """Begin and end of the window that `now` is in; a window of 0 is a calendar month."""
    if window == 0:
        return _month(now)
    offset = MONDAY if window % WEEK == 0 else 0
    start = (now - offset) // window * window + offset
    return start, start + window


def _month(now: int) -> tuple[int, int]:
    year, month = _civil(now // DAY)
    following = (year + 1, 1) if month == 12 else (year, month + 1)
    return _first_day(year, month) * DAY, _first_day(*following) * DAY


def _civil(days: int) -> tuple[int, int]:
    """Year and month of a day since the epoch.

    Counted in years that begin in March, so that the leap day is the last one, and in eras
    of 400 years; the script of the Redis store does the same.
    """
    shifted = days + 719468
    era, day = divmod(shifted, 146097)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day_of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    return year + era * 400 + (month >= 10), month + 3 if month < 10 else month - 9


def _first_day(year: int, month: int) -> int:
    """Days since the epoch of the first of a month."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5
    day = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146097 + day - 719468
