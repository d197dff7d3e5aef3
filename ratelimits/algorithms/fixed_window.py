"""Fixed window: a count that starts again with each window of the clock.

State: `used` units of the window that began at `time`; `unit` is the window's length in
microseconds (0: a calendar month), so that a changed length starts fresh.
"""

from __future__ import annotations

from .base import Reading, State, Terms, settled_time
from .windows import bounds


def settle(state: State | None, terms: Terms, now: int) -> State:
    start, _ = bounds(now, terms.window)
    if state is None or state.unit != terms.window or state.time < start:
        return State(0, 0, terms.window, start)
    return state._replace(time=settled_time(state.time, start))


def fits(state: State, terms: Terms, cost: int, now: int) -> bool:
    return state.used + cost <= terms.quota or cost == 0


def room(state: State, terms: Terms, now: int) -> int:
    return max(0, terms.quota - state.used)


def add(state: State, terms: Terms, cost: int, now: int) -> State:
    return state._replace(used=state.used + min(cost, room(state, terms, now)))


def refund(state: State, terms: Terms, cost: int, now: int) -> State:
    return state._replace(used=max(0, state.used - cost))


def expires(state: State, terms: Terms) -> int:
    return _end(state, terms) if state.used else state.time


def _end(state: State, terms: Terms) -> int:
    return bounds(state.time, terms.window)[1]


def condense(state: State, terms: Terms, cost: int) -> State:
    return state


def read(state: State, terms: Terms, cost: int, now: int) -> Reading:
    left = room(state, terms, now)
    to_end = _end(state, terms) - now
    if cost > terms.quota:
        return Reading(left, None, to_end)
    return Reading(left, 0 if cost <= left else to_end, to_end)
