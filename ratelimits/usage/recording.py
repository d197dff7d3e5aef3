"""What takes leave behind, on the path of each request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ratelimits.algorithms import Operation

from .lines import Take, units_of
from .recorder import recorder

if TYPE_CHECKING:
    from ratelimits.requests import Counted
    from ratelimits.telling import Taken


def record(operation: Operation, taken: Taken, ledger: Counted | None) -> None:
    """Note what an operation has done."""
    if operation is Operation.TAKE:
        take = Take(taken.group, taken.decision)
        if ledger is None:
            recorder.note(take)
        elif ledger.told is None:
            ledger.told = take
            recorder.note(take)
        else:
            recorder.note_again(ledger, take, taken.given_back)
    elif operation is not Operation.PEEK and not taken.decision.unavailable:
        sign = -1 if operation is Operation.REFUND else 1
        recorder.note(units_of(taken.group, taken.decision, sign))
