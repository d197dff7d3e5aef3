"""From what a store answered to what a caller is told. No I/O."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from .algorithms import ALGORITHMS, Operation, State
from .algorithms.base import ceil_div
from .limits import SECOND, Decision, Outcome
from .stores.base import Answer, Group, Slot


def decide(
    operation: Operation, group: Group, costs: Sequence[int], cost: int, answer: Answer
) -> Decision:
    """The decision of one operation over the limits of a group; `cost` is the request's."""
    if answer.unavailable:
        return Decision((), cost, unavailable=True, spread=random.random())
    outcomes = tuple(outcomes_of(operation, group, costs, answer))
    spread = 0.0 if answer.allowed else random.random()
    return Decision(outcomes, cost, spread=spread)


def outcomes_of(
    operation: Operation, group: Group, costs: Sequence[int], answer: Answer
) -> Iterable[Outcome]:
    asked = operation in (Operation.TAKE, Operation.PEEK)
    for slot, cost, state, fitted in zip(
        group.slots, costs, answer.states, answer.fitted, strict=True
    ):
        if state is not None:
            yield outcome_of(slot, cost, state, fitted or not asked, answer.now)


def outcome_of(slot: Slot, cost: int, state: State, fits: bool, now: int) -> Outcome:
    """What to tell of one limit, in the terms of Outcome."""
    limit = slot.limit
    reading = ALGORITHMS[limit.algorithm].read(state, limit.terms, cost, now)
    remaining = max(0, reading.remaining)
    reset = _reset(slot, remaining, reading.next, fits)
    return Outcome(limit, fits, remaining, reset, 0 if fits else reading.wait, cost)


def _reset(slot: Slot, remaining: int, following: int | None, fits: bool) -> int:
    """Microseconds for the field `t`: see Outcome."""
    terms = slot.limit.terms
    if slot.limit.algorithm == "fixed_window" or (not fits and following is not None):
        return following or 0
    if terms.quota == 0:
        # Nothing more within the window, nor ever.
        return terms.window or 30 * 86400 * SECOND
    return max(following or 0, ceil_div(remaining * terms.window, terms.quota))
