"""How much a limit lets pass in a time."""

from __future__ import annotations

from fractions import Fraction

from .limits import Limit

DAY = 86400


def most_in(limit: Limit, seconds: int) -> int | None:
    """The most units that can pass in a minute or an hour of the clock; None if unlimited."""
    if limit.rate.is_unlimited:
        return None
    if limit.algorithm == "token_bucket":
        return limit.capacity + limit.quota * seconds // limit.rate.window
    # A calendar month is longer than any time that is asked for.
    window = limit.rate.window or 28 * DAY
    windows = max(1, -(-seconds // window))
    # Its windows, which begin with minutes and hours, unless neither is a multiple of the other.
    is_aligned = seconds % window == 0 or window % seconds == 0
    return limit.quota * (windows if is_aligned else windows + 1)


def sustained_in(limit: Limit, seconds: Fraction) -> Fraction | None:
    """The units that keep coming in a time, without what a burst adds once; None if unlimited.

    All of a longer window's units may come in it.
    """
    if limit.rate.is_unlimited:
        return None
    window = limit.rate.window or 30 * DAY
    return limit.quota * max(Fraction(1), seconds / window)
