"""How much a limit lets pass in a time."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from .limits import Limit

DAY = 86400


def most_in(limit: Limit, seconds: int) -> int | None:
    """The most units that can pass in a minute or an hour of the clock; None if unlimited."""
    if limit.rate.is_unlimited:
        return None
    if limit.algorithm == "token_bucket":
        return limit.capacity + limit.quota * seconds // limit.rate.window
    window = _window(limit)
    windows = max(1, -(-seconds // window))
    # Its windows, which begin with minutes and hours, unless neither is a multiple of the other.
    is_aligned = seconds % window == 0 or window % seconds == 0
    return limit.quota * (windows if is_aligned else windows + 1)


def sold_in(limits: Iterable[Limit], seconds: Fraction) -> Fraction | None:
    """The units that a tenant may count on in a time, without bursts; None if unlimited.

    The limit of the shortest window says how fast it may go, the others how much it may use up,
    all of which may be now.
    """
    windows = [(limit, _window(limit)) for limit in limits if not limit.rate.is_unlimited]
    shortest = min((window for _, window in windows), default=0)
    return min(
        (
            limit.quota * max(seconds / window, Fraction(window != shortest))
            for limit, window in windows
        ),
        default=None,
    )


def _window(limit: Limit) -> int:
    # A calendar month, roughly.
    return limit.rate.window or 30 * DAY
