"""Sliding log: every hit is kept until it is a window old.

State: `hits` of (time, cost) in the order in which they came, which is the order of their
times unless the clock stepped back; `used` units in all, last settled at `time`.
Condensed: `part` and `unit` are the moments at which the asked cost, and one more unit,
fit; 0 where they do now, or never will.
"""

from __future__ import annotations

from .base import SKEW, Reading, State, Terms


def settle(state: State | None, terms: Terms, now: int) -> State:
    hits = () if state is None else state.hits
    hits = tuple((_not_far_ahead(at, now), cost) for at, cost in hits if at > now - terms.window)
    return State(sum(cost for _, cost in hits), 0, 0, now, hits)


def _not_far_ahead(at: int, now: int) -> int:
    return at if at <= now + SKEW else now


def fits(state: State, terms: Terms, cost: int, now: int) -> bool:
    return cost <= room(state, terms, now)


def room(state: State, terms: Terms, now: int) -> int:
    return max(0, terms.quota - state.used)


def add(state: State, terms: Terms, cost: int, now: int) -> State:
    taken = min(cost, room(state, terms, now))
    if taken == 0:
        return state
    return state._replace(used=state.used + taken, hits=(*state.hits, (now, taken)))


def refund(state: State, terms: Terms, cost: int, now: int) -> State:
    """Takes from the newest hits."""
    hits, left = list(state.hits), cost
    while left and hits:
        at, taken = hits.pop()
        if taken > left:
            hits.append((at, taken - left))
        left -= min(taken, left)
    return state._replace(used=state.used - cost + left, hits=tuple(hits))


def expires(state: State, terms: Terms) -> int:
    return max((at for at, _ in state.hits), default=state.time - terms.window) + terms.window


def condense(state: State, terms: Terms, cost: int) -> State:
    one_more = min(terms.quota, room(state, terms, 0) + 1)
    part = _release(state, terms, cost)
    return State(state.used, part, _release(state, terms, one_more), state.time)


def _release(state: State, terms: Terms, cost: int) -> int:
    """The first moment at which `cost` fits, if nobody else comes; 0 if now or never."""
    need = state.used + cost - terms.quota
    if need <= 0 or cost > terms.quota:
        return 0
    for at, taken in sorted(state.hits):
        need -= taken
        if need <= 0:
            return at + terms.window
    return 0


def read(state: State, terms: Terms, cost: int, now: int) -> Reading:
    left = room(state, terms, now)
    following = state.unit - now if state.unit else None
    if cost > terms.quota:
        return Reading(left, None, following)
    return Reading(left, 0 if cost <= left else state.part - now, following)
