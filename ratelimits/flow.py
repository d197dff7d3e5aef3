"""The flow behind the limiter's functions and the doors, without its awaits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from asgiref.sync import sync_to_async

from .algorithms import Operation
from .catalog import Caller, own_subject
from .conf import conf
from .counting import decide
from .edits import catalog
from .effects import Effect, Flow
from .exceptions import CatalogUnavailable
from .limits import Decision
from .logs import logger
from .requests import counted, plain
from .stores import get_store
from .stores.base import Group, Store
from .who import Who, aat_address, acaller_of, at_address, caller_of

# How often a caller whose limits are being edited reads them anew before it takes.
TRIES = 5


def operate(operation: Operation, who: Who, scope: str, cost: int) -> Flow[Decision]:
    """One operation on all limits of a key's or a request's plan."""
    return (yield from _on_plan(operation, who, scope, cost, Effect(caller_of, acaller_of, (who,))))


def at_door(request: Any) -> Flow[Decision]:
    """Take from the service's limits per address, before anyone is authenticated."""
    find = Effect(at_address, aat_address, (request,))
    return (yield from _on_plan(Operation.TAKE, request, "", 1, find))


def _on_plan(operation: Operation, who: Who, scope: str, cost: int, find: Effect) -> Flow[Decision]:
    check_cost(cost)
    store = active_store()
    if store is None:
        return Decision((), cost)
    caller, exempt = yield find
    if exempt and caller.tenant is None:
        return Decision((), cost)
    try:
        group = yield from _group(caller, scope)
    except CatalogUnavailable:
        return Decision((), cost, unavailable=conf.STORE_FAILURE == "deny")
    if exempt and not group.own:
        return Decision((), cost)

    def again(stale: tuple[str, ...]) -> Flow[Group]:
        catalog().learn(caller, stale)
        return (yield from _group(caller, scope))

    return (yield from count(operation, store, who, group, cost, again))


def count(
    operation: Operation,
    store: Store,
    who: Who,
    group: Group,
    cost: int,
    again: Callable[[tuple[str, ...]], Flow[Group]] | None = None,
) -> Flow[Decision]:
    """One operation on a group. `again` gives the group anew if the store knows newer versions."""
    ledger = None if isinstance(who, str) else counted(who)
    for attempt in range(TRIES):
        if not group.slots:
            return Decision((), cost)
        costs = [cost] * len(group.slots)
        if ledger is not None and operation is Operation.TAKE:
            costs = ledger.missing(group, cost)
            if cost and not any(costs):
                return ledger.of(group, cost)
        # Somebody edits faster than this reads: what was read last is as good as any.
        asked = replace(group, versions=()) if attempt == TRIES - 1 else group
        now = time.time_ns() // 1000 if conf.CLOCK == "process" else None
        answer = yield Effect(store.run, store.arun, (operation, asked, costs, now))
        if answer.stale is None or again is None:
            break
        group = yield from again(answer.stale)
    decision = decide(operation, group, costs, answer)
    if ledger is not None and operation is not Operation.PEEK:
        ledger.add(group, costs if operation is Operation.TAKE else (), decision)
        plain(who).ratelimit = ledger.everything(decision)  # type: ignore[attr-defined]
    _report(decision)
    return decision


def forget(who: Who) -> Flow[None]:
    """Reset a caller's own buckets."""
    store = active_store()
    if store is not None:
        caller, _ = yield Effect(caller_of, acaller_of, (who,))
        group = yield from _group(caller, None)
        subject = own_subject(caller)
        slots = tuple(slot for slot in group.slots if slot.subject == subject)
        yield Effect(store.reset, store.areset, (Group(slots), (subject,)))


def _group(caller: Caller, scope: str | None) -> Flow[Group]:
    kept = catalog()
    group = kept.warm(caller, scope)
    if group is None:
        group = yield Effect(kept.load, sync_to_async(kept.load), (caller, scope))
    return group


def active_store() -> Store | None:
    """The store, None if nothing is counted: switched off, or a dummy cache."""
    return None if conf.MODE == "off" else get_store()


def check_cost(cost: object) -> None:
    """Raises ValueError unless it is a whole number of units, 0 or more."""
    if not isinstance(cost, int) or isinstance(cost, bool) or cost < 0:
        raise ValueError(f"A cost is a whole number of units, 0 or more, not {cost!r}.")


def _report(decision: Decision) -> None:
    for outcome in decision.outcomes:
        if not outcome.allowed and outcome.limit.is_shadow:
            logger.info('The limit "%s", in shadow, would have refused.', outcome.name)
