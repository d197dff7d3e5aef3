"""The four ways to count, as pure functions, and one take over several limits."""

from __future__ import annotations

from . import fixed_window, sliding_counter, sliding_log, token_bucket
from .base import Algorithm, Reading, State, Terms
from .together import Ask, Operation, Result, run

ALGORITHMS: dict[str, Algorithm] = {
    "token_bucket": token_bucket,
    "fixed_window": fixed_window,
    "sliding_log": sliding_log,
    "sliding_counter": sliding_counter,
}

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Ask",
    "Operation",
    "Reading",
    "Result",
    "State",
    "Terms",
    "run",
]
