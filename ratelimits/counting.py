"""From what a store answered to what a caller is told. No I/O."""

from __future__ import annotations

import random
from collections.abc import Sequence

from .algorithms import ALGORITHMS, Operation, State
from .algorithms.base import ceil_div
from .limits import SECOND, Decision, Limit, Outcome
from .stores.base import Answer, Group, Slot


def decide(
    operation: Operation, group: Group, costs: Sequence[int], cost: int, answer: Answer
) -> Decision:
    """The decision of one operation over the limits of a group; `cost` is the request's."""
    if answer.unavailable:
        return Decision((), cost, unavailable=True, spread=random.random())
    spread = 0.0 if answer.allowed else random.random()
    return Decision(tuple(outcomes_of(operation, group, costs, answer)), cost, False, spread)


def outcomes_of(
    operation: Operation, group: Group, costs: Sequence[int], answer: Answer
) -> list[Outcome]:
    asked = operation is Operation.TAKE or operation is Operation.PEEK
    return [
        outcome_of(slot, cost, state, fitted or not asked, answer.now, share)
        for slot, cost, state, fitted, share in zip(
            group.slots, costs, answer.states, answer.fitted, shares_of(group, answer), strict=True
        )
        if state is not None
    ]


def shares_of(group: Group, answer: Answer) -> Sequence[Limit | None]:
    """For each limit the part of it that was counted, None for the whole."""
    return answer.shares or (None,) * len(group.slots)


def outcome_of(
    slot: Slot, cost: int, state: State, fits: bool, now: int, share: Limit | None = None
) -> Outcome:
    """What to tell of one limit, in the terms of Outcome; what is left is left of its share."""
    limit = slot.limit
    counted = limit if share is None else share
    remaining, wait, following = ALGORITHMS[limit.algorithm].read(state, counted.terms, cost, now)
    if remaining < 0:
        remaining = 0
    if wait is None and counted.capacity < cost <= limit.capacity:
        # Too much for a process alone, but not for the store, which may be back by then.
        wait = following = following or SECOND
    reset = _reset(counted, remaining, following, fits)
    return Outcome(limit, fits, remaining, reset, 0 if fits else wait, cost)


def _reset(limit: Limit, remaining: int, following: int | None, fits: bool) -> int:
    """Microseconds for the field `t`: see Outcome."""
    terms = limit.terms
    if limit.algorithm == "fixed_window" or (not fits and following is not None):
        return following or 0
    if terms.quota == 0:
        # Nothing more within the window, nor ever.
        return terms.window or 30 * 86400 * SECOND
    return max(following or 0, ceil_div(remaining * terms.window, terms.quota))
