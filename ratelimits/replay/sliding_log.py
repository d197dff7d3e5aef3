"""The sliding log for calls in the order of time: the same answers, without copies of the hits.

Each call would otherwise copy every hit of its window, up to 10,000 of them.
"""

from __future__ import annotations

from collections import deque

from ratelimits.algorithms import Terms


class Hits:
    """The state of one log, which changes in place. What the algorithm calls `used` is in use."""

    __slots__ = ("hits", "used")

    def __init__(self) -> None:
        self.hits: deque[tuple[int, int]] = deque()
        self.used = 0


class SlidingLog:
    """As algorithms.sliding_log, for times that never step back."""

    def settle(self, state: Hits | None, terms: Terms, now: int) -> Hits:
        if state is None:
            return Hits()
        hits, oldest = state.hits, now - terms.window
        while hits and hits[0][0] <= oldest:
            state.used -= hits.popleft()[1]
        return state

    def fits(self, state: Hits, terms: Terms, cost: int, now: int) -> bool:
        return cost <= max(0, terms.quota - state.used)

    def add(self, state: Hits, terms: Terms, cost: int, now: int) -> Hits:
        taken = min(cost, max(0, terms.quota - state.used))
        if taken:
            state.hits.append((now, taken))
            state.used += taken
        return state
