"""A process's share of a limit, for when processes can't count together."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from ratelimits.algorithms import State
from ratelimits.algorithms.base import ceil_div
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


def part_of(state: State, algorithm: str, workers: int) -> State:
    """A process's part of a condensed state of a limit, rounded up."""
    if algorithm == "token_bucket":
        units = state.used * state.unit + state.part
        used, part = divmod(units, state.unit * workers)
        return State(used, part, state.unit * workers, state.time)
    used = ceil_div(state.used, workers)
    if algorithm == "sliding_log":
        # A condensed log does not say when its hits were. None ends earlier than the last one.
        hits = ((state.time, used),) if used else ()
        return State(used, 0, 0, state.time, hits)
    return state._replace(used=used, part=ceil_div(state.part, workers))


def quiet(slot: Slot) -> Slot:
    """The same limit, counted without ever refusing."""
    return Slot(_quiet(slot.limit), slot.subject)


@lru_cache(maxsize=4096)
def _quiet(limit: Limit) -> Limit:
    return replace(limit, mode="shadow")
