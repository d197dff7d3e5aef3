"""One operation over several limits: all of them, or none."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from .base import Algorithm, State, Terms


class Operation(IntEnum):
    """What is done to the limits of a call. The numbers are the script's."""

    TAKE = 0
    PEEK = 1
    CHARGE = 2
    REFUND = 3


class Ask(NamedTuple):
    """What is asked of one limit. One that is not `firm` takes what is left, and never refuses."""

    algorithm: Algorithm
    terms: Terms
    cost: int
    firm: bool = True


class Result(NamedTuple):
    """What an operation left behind: a state, and whether its cost fitted, for each limit."""

    allowed: bool
    states: tuple[State, ...]
    fitted: tuple[bool, ...]


def run(
    operation: Operation, asks: Sequence[Ask], states: Sequence[State | None], now: int
) -> Result:
    """Do one operation at a time in microseconds, on the stored states of its limits.

    A take is refused if any firm limit lacks room, and then takes nothing. The states are
    to be stored even so, as what settling gave: a burst that was lowered or a clock that was
    set back would otherwise break the wait that is told. Only a peek stores nothing.
    """
    settled = tuple(a.algorithm.settle(s, a.terms, now) for a, s in zip(asks, states, strict=True))
    fitted = tuple(
        a.algorithm.fits(s, a.terms, a.cost, now) for a, s in zip(asks, settled, strict=True)
    )
    refused = operation in (Operation.TAKE, Operation.PEEK) and any(
        a.firm and not fits for a, fits in zip(asks, fitted, strict=True)
    )
    if refused or operation is Operation.PEEK:
        return Result(not refused, settled, fitted)
    after = tuple(_apply(operation, a, s, now) for a, s in zip(asks, settled, strict=True))
    return Result(True, after, fitted)


def _apply(operation: Operation, ask: Ask, state: State, now: int) -> State:
    if operation is Operation.REFUND:
        return ask.algorithm.refund(state, ask.terms, ask.cost, now)
    return ask.algorithm.add(state, ask.terms, ask.cost, now)
