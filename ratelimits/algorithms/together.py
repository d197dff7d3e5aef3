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
    if len(asks) == 1:
        return _run_one(operation, asks[0], states[0], now)
    settled, fitted, refused = [], [], False
    for (algorithm, terms, cost, firm), stored in zip(asks, states, strict=True):
        state = algorithm.settle(stored, terms, now)
        fits = algorithm.fits(state, terms, cost, now)
        settled.append(state)
        fitted.append(fits)
        refused = refused or (firm and not fits)
    if operation is Operation.PEEK or (refused and operation is Operation.TAKE):
        return Result(not refused, tuple(settled), tuple(fitted))
    gives_back = operation is Operation.REFUND
    after = [
        (algorithm.refund if gives_back else algorithm.add)(state, terms, cost, now)
        for (algorithm, terms, cost, _), state in zip(asks, settled, strict=True)
    ]
    return Result(True, tuple(after), tuple(fitted))


def _run_one(operation: Operation, ask: Ask, stored: State | None, now: int) -> Result:
    """The same for one limit, as most calls have it, at half the price."""
    algorithm, terms, cost, firm = ask
    state = algorithm.settle(stored, terms, now)
    fits = algorithm.fits(state, terms, cost, now)
    refused = firm and not fits
    if operation is Operation.PEEK or (refused and operation is Operation.TAKE):
        return Result(not refused, (state,), (fits,))
    change = algorithm.refund if operation is Operation.REFUND else algorithm.add
    return Result(True, (change(state, terms, cost, now),), (fits,))
