"""Sliding counter: this window's count, and the last one's in proportion to its overlap.

State: `used` units of the window that began at `time`, `part` units of the one before;
`unit` is the window's length in microseconds, so that a changed length starts fresh.
"""

from __future__ import annotations

from .base import Reading, State, Terms, ceil_div, settled_time
from .windows import bounds


def settle(state: State | None, terms: Terms, now: int) -> State:
    start, _ = bounds(now, terms.window)
    if state is None or state.unit != terms.window or state.time < start - terms.window:
        return State(0, 0, terms.window, start)
    if state.time == start - terms.window:
        return State(0, state.used, terms.window, start)
    return state._replace(time=settled_time(state.time, start))


def _carried(state: State, now: int) -> int:
    """What the last window still weighs, in whole units rounded up."""
    left = state.time + state.unit - max(now, state.time)
    return ceil_div(state.part * left, state.unit)


def fits(state: State, terms: Terms, cost: int, now: int) -> bool:
    return cost <= room(state, terms, now)


def room(state: State, terms: Terms, now: int) -> int:
    return max(0, terms.quota - state.used - _carried(state, now))


def add(state: State, terms: Terms, cost: int, now: int) -> State:
    return state._replace(used=state.used + min(cost, room(state, terms, now)))


def refund(state: State, terms: Terms, cost: int, now: int) -> State:
    """Gives back to this window only: one that has ended is never credited."""
    return state._replace(used=max(0, state.used - cost))


def expires(state: State, terms: Terms) -> int:
    if state.used:
        return state.time + 2 * terms.window
    return state.time + (terms.window if state.part else 0)


def condense(state: State, terms: Terms, cost: int) -> State:
    return state


def read(state: State, terms: Terms, cost: int, now: int) -> Reading:
    left = room(state, terms, now)
    wait: int | None = 0
    if cost > terms.quota:
        wait = None
    elif cost > left:
        wait = _until(state, terms, cost) - now
    if left >= terms.quota:
        return Reading(left, wait, None)
    return Reading(left, wait, _until(state, terms, left + 1) - now)


def _until(state: State, terms: Terms, cost: int) -> int:
    """The first moment at which `cost` fits, if nobody else comes."""
    allowance = terms.quota - cost
    start, weight = state.time, state.part
    if allowance >= state.used:
        allowance -= state.used
    else:
        start, weight = start + terms.window, state.used
    return start + terms.window - allowance * terms.window // weight
