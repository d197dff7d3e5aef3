"""Decisions to publish, without a store that makes them."""

from __future__ import annotations

from ratelimits.limits import SECOND, Decision, Limit, Outcome
from ratelimits.rates import Rate


def limit(name: str = "default", rate: str = "100/m", **options) -> Limit:
    return Limit(name, Rate.parse(rate), **options)


def passed(of: Limit, remaining: int = 50, reset: float = 30, cost: int = 1) -> Outcome:
    """An outcome that leaves so much; `reset` in seconds."""
    return Outcome(of, True, remaining, int(reset * SECOND), 0, cost)


def violated(of: Limit, wait: float | None = 0.6, remaining: int = 0, cost: int = 1) -> Outcome:
    """An outcome that refuses; `wait` in seconds, None if it can never pass."""
    microseconds = None if wait is None else int(wait * SECOND)
    return Outcome(of, False, remaining, microseconds or 0, microseconds, cost)


def decision(*outcomes: Outcome, **options) -> Decision:
    return Decision(outcomes, **options)
