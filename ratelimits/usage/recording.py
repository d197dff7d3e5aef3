"""What takes leave behind, on the path of each request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ratelimits.algorithms import Operation
from ratelimits.logs import logger

from .lines import units_of
from .recorder import recorder

if TYPE_CHECKING:
    from ratelimits.requests import Counted
    from ratelimits.telling import Taken


def record(operation: Operation, taken: Taken, ledger: Counted | None) -> None:
    """Note what an operation has done. Whatever is wrong here, no request fails with it."""
    try:
        if operation is Operation.TAKE:
            if ledger is None:
                recorder.note(taken)
            elif ledger.told is None:
                ledger.told = taken
                recorder.note(taken)
            else:
                recorder.note_again(ledger, taken)
        elif operation is not Operation.PEEK and not taken.decision.unavailable:
            sign = -1 if operation is Operation.REFUND else 1
            recorder.note(units_of(taken.group, taken.decision, sign))
    except Exception:
        logger.exception("A bug in the recording of usage.")
