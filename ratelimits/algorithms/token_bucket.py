"""Token bucket: what was used drains continuously, at quota per window.

State: `used` whole units and `part`/`unit` of one more are in use at `time`.
The level never exceeds the burst and never falls below zero.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from .base import Reading, State, Terms, ceil_div, settled_time

# An edited rate may need a finer unit. Beyond this the level is rounded up to the rate's
# own: less than one unit of it, never in the caller's favour.
FINEST = 2**45


# Each call needs it several times.
@lru_cache(maxsize=4096)
def rate(terms: Terms) -> tuple[int, int]:
    """Units per microsecond as a reduced fraction."""
    divisor = gcd(terms.quota, terms.window)
    return terms.quota // divisor, terms.window // divisor


def settle(state: State | None, terms: Terms, now: int) -> State:
    a, b = rate(terms)
    if state is None:
        return State(0, 0, b, now)
    used, part, unit, before, _ = state
    if unit != b:
        used, part, unit = _in_units(state, b)
    time = now
    if before < now:
        left = used * unit + part - a * (unit // b) * (now - before)
        used, part = divmod(left, unit) if left > 0 else (0, 0)
    else:
        time = settled_time(before, now)
    if used + (part > 0) > terms.burst:
        return State(terms.burst, 0, b, time)
    return State(used, part, unit if part else b, time)


def _in_units(state: State, b: int) -> tuple[int, int, int]:
    """The level in a unit that both the stored part and the rate are whole in."""
    if state.part == 0:
        return state.used, 0, b
    common = state.unit * b // gcd(state.unit, b)
    if common <= FINEST:
        return state.used, state.part * (common // state.unit), common
    carry, part = divmod(ceil_div(state.part * b, state.unit), b)
    return state.used + carry, part, b


def fits(state: State, terms: Terms, cost: int, now: int) -> bool:
    return cost <= terms.burst - state.used - (state.part > 0)


def room(state: State, terms: Terms, now: int) -> int:
    return terms.burst - state.used - (state.part > 0)


def add(state: State, terms: Terms, cost: int, now: int) -> State:
    """More is used; a charge above what is left empties the bucket and no more."""
    used, part, unit, time, _ = state
    if cost > terms.burst - used - (part > 0):
        return State(terms.burst, 0, unit, time)
    return State(used + cost, part, unit, time)


def refund(state: State, terms: Terms, cost: int, now: int) -> State:
    if cost > state.used:
        return state._replace(used=0, part=0)
    return state._replace(used=state.used - cost)


def expires(state: State, terms: Terms) -> int:
    if terms.quota == 0:
        return state.time
    return state.time + _to_drain(state.used, state, terms)


def _to_drain(units: int, state: State, terms: Terms) -> int:
    """Microseconds until `units` and the part of one have drained, rounded up."""
    a, b = rate(terms)
    return ceil_div((units * state.unit + state.part) * b, a * state.unit)


def condense(state: State, terms: Terms, cost: int) -> State:
    return state


def read(state: State, terms: Terms, cost: int, now: int) -> Reading:
    quota, burst, _ = terms
    used, part, _, time, _ = state
    left = burst - used - (part > 0)
    wait: int | None = 0
    if cost > left:
        never = cost > burst or quota == 0
        wait = None if never else time - now + _to_drain(used + cost - burst, state, terms)
    if left >= burst or quota == 0:
        return Reading(left, wait, None)
    return Reading(left, wait, time - now + _to_drain(used + left + 1 - burst, state, terms))
