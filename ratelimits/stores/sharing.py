"""A process's share of a limit, for when processes can't count together."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from ratelimits.limits import Limit
from ratelimits.rates import MAX_WINDOW, Rate

from .base import Slot


def share_of(slot: Slot, workers: int) -> Slot:
    """What each of so many processes may let through; at least one unit, if there is any."""
    if workers == 1:
        return slot
    return Slot(_share(slot.limit, workers), slot.subject)


@lru_cache(maxsize=4096)
def _share(limit: Limit, workers: int) -> Limit:
    quota, window = limit.quota, limit.rate.window
    if limit.algorithm != "token_bucket":
        return replace(limit, rate=Rate(min(quota, max(1, quota // workers)), window))
    burst = max(1, limit.capacity // workers) if quota else None
    # The same quota in so many times the window loses nothing to rounding.
    if window * workers <= MAX_WINDOW:
        return replace(limit, rate=Rate(quota, window * workers), burst=burst)
    return replace(limit, rate=Rate(min(quota, max(1, quota // workers)), window), burst=burst)
