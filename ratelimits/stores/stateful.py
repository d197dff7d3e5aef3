"""What the stores share that read states, count with the pure functions and write back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ratelimits.algorithms import Ask, Operation, State, run

from .base import Answer, Group


class Counted(NamedTuple):
    """An answer, and the states to store. A peek's are not."""

    answer: Answer
    states: tuple[State, ...]


def stale(group: Group, current: Callable[[str], str]) -> Answer | None:
    """The answer to a caller who knows other versions than the store's, if so."""
    for key, known in group.versions:
        if (current(key) or known) != known:
            now = tuple([current(key) or known for key, known in group.versions])
            return Answer(0, False, (), (), now)
    return None


def count(
    operation: Operation, asks: Sequence[Ask], stored: Sequence[State | None], now: int
) -> Counted:
    """Do an operation on the stored states of its limits, at a time in microseconds."""
    result = run(operation, asks, stored, now)
    states = result.states
    condensed = [
        ask.algorithm.condense(state, ask.terms, ask.cost)
        for ask, state in zip(asks, states, strict=True)
    ]
    return Counted(Answer(now, result.allowed, tuple(condensed), result.fitted), states)
