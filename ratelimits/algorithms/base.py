"""What the algorithms share: the terms of a limit, its state, the reading of it.

Every time is a whole number of microseconds since the epoch, every amount a whole number
of units or an exact fraction of one. Nothing here rounds in the caller's favour.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

# A stored time that lies ahead of now by no more than this is another server's clock, and
# is waited out. Further ahead, the clock was set back.
SKEW = 10_000_000
DAY = 86_400_000_000
WEEK = 7 * DAY
# The epoch was a Thursday; weeks begin on Mondays.
MONDAY = 4 * DAY


class Terms(NamedTuple):
    """The arithmetic of one limit: units per window (microseconds; 0 is a calendar month)."""

    quota: int
    burst: int
    window: int


class State(NamedTuple):
    """What is stored of one limit. The fields mean what its algorithm says."""

    used: int
    part: int
    unit: int
    time: int
    hits: tuple[tuple[int, int], ...] = ()


class Reading(NamedTuple):
    """What a caller is told of one limit.

    `wait` is microseconds until the cost would fit: 0 if it fits now, None if it never will.
    `next` is microseconds until one more whole unit is left, None if there won't be one.
    """

    remaining: int
    wait: int | None
    next: int | None


class Algorithm(Protocol):
    """Pure functions over State. `settle` comes first; the others take what it gave."""

    def settle(self, state: State | None, terms: Terms, now: int) -> State:
        """The state as of now. A refusal stores it too, or its wait would not hold."""

    def fits(self, state: State, terms: Terms, cost: int, now: int) -> bool: ...

    def room(self, state: State, terms: Terms, now: int) -> int:
        """The largest cost that fits."""

    def add(self, state: State, terms: Terms, cost: int, now: int) -> State: ...

    def refund(self, state: State, terms: Terms, cost: int, now: int) -> State: ...

    def expires(self, state: State, terms: Terms) -> int:
        """The time from which the state is as if it had never been written."""

    def condense(self, state: State, terms: Terms, cost: int) -> State:
        """The state without what `read` does not need; what a store answers with."""

    def read(self, state: State, terms: Terms, cost: int, now: int) -> Reading:
        """What to tell the caller, from a condensed state."""


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def settled_time(stored: int, now: int) -> int:
    """The time to go on from: a stored one that is a little ahead is waited out."""
    return stored if now < stored <= now + SKEW else now
