"""The histories of tests/vectors give their right answers on every store."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ratelimits.algorithms import Operation
from ratelimits.limits import Decision, Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Store

from .stores import SECOND, Calls, left

FILE = Path(__file__).parent.parent / "vectors" / "histories.jsonl.gz"


@cache
def histories() -> list[dict[str, Any]]:
    with gzip.open(FILE, "rt") as lines:
        return [json.loads(line) for line in lines]


def limits_of(described: Mapping[str, Any]) -> list[Limit]:
    return [
        Limit(
            name,
            Rate(terms["quota"], terms["window_us"] // SECOND),
            terms["burst"],
            algorithm=terms["algorithm"],
        )
        for name, terms in described.items()
    ]


def as_expected(decision: Decision, asked: bool) -> dict[str, Any]:
    """A decision in the words of the histories."""
    if not asked:
        return {"remaining": left(decision)}
    return {
        "allowed": decision.allowed,
        "wait_us": decision.wait_us,
        "never": any(outcome.never for outcome in decision.outcomes),
        "violated": [outcome.name for outcome in decision.violated],
        "remaining": left(decision),
    }


def play(history: dict[str, Any], store: Store) -> int:
    """Returns how many answers were right; the first wrong one fails."""
    calls, right = Calls(store, *limits_of(history["limits"])), 0
    for number, step in enumerate(history["steps"]):
        if step["op"] == "edit":
            calls.edit(*limits_of(step["limits"]))
            continue
        operation = Operation[step["op"].upper()]
        decision = calls.do(operation, step["cost"], step["at_us"])
        assert as_expected(decision, "allowed" in step["expect"]) == step["expect"], number
        right += 1
    return right


def test_histories(store: Store) -> None:
    assert len(histories()) == 500
    assert sum(play(history, store) for history in histories()) == 11_248
