"""The pure functions and the stores of every kind give the same answers to any history."""

from __future__ import annotations

from hypothesis import given

from ratelimits.stores.base import Store

from .examples import Clock, History, examples, histories
from .stores import Calls


@examples(250)
@given(history=histories())
def test_stores_agree(history: History, all_kinds: dict[str, Store]) -> None:
    """Whether it passes, what fitted, and every number of every state, at every step."""
    clock = Clock(history.start)
    callers = [Calls(store, *history.limits) for store in all_kinds.values()]
    for step in history.steps:
        now = clock.step(step.later)
        for calls in callers:
            calls.edit(*step.edit)
        pure, *others = [calls.answer(step.operation, step.cost, now) for calls in callers]
        for other in others:
            assert other == pure
        clock.hear(callers[0].told(step.operation, step.cost, pure))
