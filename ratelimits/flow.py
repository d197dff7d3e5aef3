"""The flow behind the limiter's functions and the doors, without its awaits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

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
from .who import Counted, Who, aat_address, acaller_of, at_address, caller_of

# How often a caller whose limits are being edited reads them anew before it takes.
TRIES = 5


class Asked(NamedTuple):
    """The limits that apply, and what is asked of each."""

    group: Group
    costs: list[int]


NOTHING = Asked(Group(()), [])

# Gives what is asked; a second time if the store knows newer versions, which it is told.
Find = Callable[["tuple[str, ...] | None"], Flow[Asked]]


def operate(operation: Operation, who: Who, scope: str, cost: int) -> Flow[Decision]:
    """One operation on all limits of a key's or a request's plan."""
    caller = Effect(caller_of, acaller_of, (who,))
    return (yield from count(operation, who, cost, of_plan(caller, scope, cost)))


def at_door(request: Any) -> Flow[Decision]:
    """Take from the service's limits per address, before anyone is authenticated."""
    caller = Effect(at_address, aat_address, (request,))
    return (yield from count(Operation.TAKE, request, 1, of_plan(caller, "", 1)))


def of_plan(caller: Effect, scope: str, cost: int) -> Find:
    """Asks for the limits that the plan of a caller has for a scope."""
    found: list[Counted] = []

    def find(stale: tuple[str, ...] | None) -> Flow[Asked]:
        if not found:
            found.append((yield caller))
        who, exempt = found[0]
        if exempt and who.tenant is None:
            return NOTHING
        if stale is not None:
            catalog().learn(who, stale)
        group = yield from limits_of(who, scope)
        if exempt and not group.own:
            return NOTHING
        return Asked(group, [cost] * len(group.slots))

    return find


def limits_of(caller: Caller, scope: str | None) -> Flow[Group]:
    """The limits of a caller; a scope of None is all scopes."""
    kept = catalog()
    group = kept.warm(caller, scope)
    if group is None:
        group = yield Effect(kept.load, sync_to_async(kept.load), (caller, scope))
    return group


def count(operation: Operation, who: Who, cost: int, find: Find) -> Flow[Decision]:
    """One operation on what is asked, all or nothing. `cost` is that of the request as a whole."""
    check_cost(cost)
    store = active_store()
    if store is None:
        return Decision((), cost)
    try:
        return (yield from _counted(operation, store, who, cost, find))
    except CatalogUnavailable:
        return Decision((), cost, unavailable=conf.STORE_FAILURE == "deny")


def _counted(operation: Operation, store: Store, who: Who, cost: int, find: Find) -> Flow[Decision]:
    ledger = None if isinstance(who, str) else counted(who)
    stale = None
    for attempt in range(TRIES):
        group, costs = yield from find(stale)
        if not group.slots:
            return Decision((), cost)
        if ledger is not None and operation is Operation.TAKE:
            missing = ledger.missing(group, costs)
            if any(costs) and not any(missing):
                return ledger.of(group, cost)
            costs = missing
        # Somebody edits faster than this reads: what was read last is as good as any.
        asked = replace(group, versions=()) if attempt == TRIES - 1 else group
        now = time.time_ns() // 1000 if conf.CLOCK == "process" else None
        answer = yield Effect(store.run, store.arun, (operation, asked, costs, now))
        stale = answer.stale
        if stale is None:
            break
    decision = decide(operation, group, costs, cost, answer)
    if ledger is not None and operation is not Operation.PEEK:
        ledger.add(group, costs if operation is Operation.TAKE else [], decision)
        plain(who).ratelimit = ledger.everything(decision)  # type: ignore[attr-defined]
    _report(decision)
    return decision


def forget(who: Who) -> Flow[None]:
    """Reset a caller's own buckets."""
    store = active_store()
    if store is not None:
        caller, _ = yield Effect(caller_of, acaller_of, (who,))
        group = yield from limits_of(caller, None)
        subject = own_subject(caller)
        slots = tuple(slot for slot in group.slots if slot.subject == subject)
        yield Effect(store.reset, store.areset, (Group(slots), (subject,)))


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
