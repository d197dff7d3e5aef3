"""What a refused request gives back, so that it has taken nothing from any bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .algorithms import Operation
from .clock import microseconds
from .conf import conf
from .counting import outcome_of, shares_of
from .effects import Effect, Flow
from .limits import Decision
from .requests import Counted as Ledger
from .stores.base import Answer, Group, Store


def ask(
    store: Store,
    operation: Operation,
    group: Group,
    costs: Sequence[int],
    ledger: Ledger | None = None,
) -> Effect:
    """One operation of the store."""
    now = None if ledger is None else ledger.now
    if now is None and conf.CLOCK == "process":
        now = microseconds()
    return Effect(store.run, store.arun, (operation, group, costs, now))


def all_anew(
    store: Store, ledger: Ledger, group: Group, costs: list[int], missing: list[int], answer: Answer
) -> Flow[tuple[Answer, list[int]]]:
    """Refused what a raised cost adds: give the rest back too, and ask for the whole.

    Or else a refused request would have taken something, and after the wait that it is told
    it would take that again, and lack as much as before.
    """
    before = ledger.raised(group, costs)
    if not any(before):
        return answer, missing
    unversioned = replace(group, versions=())
    yield ask(store, Operation.REFUND, unversioned, before, ledger)
    ledger.took(group, [-had for had in before])
    missing = ledger.missing(group, costs)
    return (yield ask(store, Operation.TAKE, unversioned, missing, ledger)), missing


def nothing_taken(store: Store, ledger: Ledger, refused: Decision) -> Flow[Decision]:
    """Refused at a door: what earlier doors took is given back. The refusal, with what is left.

    One take at each door can't be one over all of them, since the first doesn't know yet who
    asks. What views take by the limiter's functions is theirs to give back.
    """
    group, costs = ledger.by_doors()
    if not costs:
        return refused
    answer: Answer = yield ask(store, Operation.REFUND, group, costs, ledger)
    if answer.unavailable:
        return refused
    ledger.took(group, [-cost for cost in costs])
    newer = ledger.update(
        (slot, outcome_of(slot, cost, state, True, answer.now, share))
        for slot, cost, state, share in zip(
            group.slots, costs, answer.states, shares_of(group, answer), strict=True
        )
        if state is not None
    )
    return replace(refused, outcomes=tuple(newer.get(id(o), o) for o in refused.outcomes))
