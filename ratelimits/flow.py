"""The flow behind the limiter's functions and the doors, without its awaits."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .addresses import address_of
from .algorithms import Operation
from .asking import NOTHING, Asked, Find, OfPlan, limits_of
from .catalog import own_subject
from .conf import conf
from .counting import decide
from .edits import catalog, shared
from .effects import Effect, Flow
from .exceptions import CatalogUnavailable
from .hearing import hearing
from .limits import Decision, Occasion
from .logs import logger
from .requests import Counted as Ledger
from .requests import Entry, counted, plain
from .returning import all_anew, ask, nothing_taken
from .stores import get_store
from .stores.base import Group, Store
from .storms import storms
from .telling import Taken, is_heard, tell
from .usage.recording import record
from .who import Who, aat_address, acaller_of, at_address, caller_of, check_who

# How often a caller whose limits are being edited reads them anew before it takes.
TRIES = 5


def operate(
    operation: Operation, who: Who, scope: str, cost: int, is_async: bool = False
) -> Flow[Decision]:
    """One operation on all limits of a key's or a request's plan."""
    # What is charged and given back are amounts, and no requests of the scope.
    is_amount = operation is Operation.CHARGE or operation is Operation.REFUND
    find = OfPlan(who, scope, cost, is_async=is_async, is_amount=is_amount)
    return count(operation, who, cost, find)


def at_door(request: Any, is_spared: Callable[[Any], bool]) -> Flow[Decision]:
    """Take from the service's limits per address, before anyone is authenticated."""
    find: OfPlan | None = None

    def find_unless_spared(stale: tuple[str, ...] | None) -> Flow[Asked]:
        nonlocal find
        if find is None:
            known = yield Effect(at_address, aat_address, (request,))
            find = OfPlan(request, "", 1, known=known)
        found = find(stale)
        asked = found if isinstance(found, Asked) else (yield from found)
        return NOTHING if asked.group.slots and is_spared(request) else asked

    def take() -> Flow[Decision]:
        return take_at_door(request, 1, find_unless_spared)

    if storms and storms.is_on(address_of(request)):
        return _waiting(request, take)
    return take()


def _waiting(request: Any, take: Callable[[], Flow[Decision]]) -> Flow[Decision]:
    """Let a request wait at its first door for the second one: see storms.py."""
    yield from ()
    counted(request).waiting = take
    passed = plain(request).ratelimit = Decision((), 1)  # type: ignore[attr-defined]
    return passed


def is_waiting(request: Any) -> bool:
    """Whether the first door has not taken yet."""
    return counted(request).waiting is not None


def settle(request: Any) -> Flow[Decision]:
    """Take at the first door what it has let wait."""
    ledger = counted(request)
    take, ledger.waiting = ledger.waiting, None
    decision = Decision((), 1) if take is None else (yield from take())
    if not decision.allowed:
        storms.end(address_of(request))
    return decision


def at_view(request: Any, scope: str = "", cost: int = 1, is_async: bool = False) -> Flow[Decision]:
    """Take from a request's plan at a door: if it refuses, the request has taken nothing."""
    return take_at_door(request, cost, OfPlan(request, scope, cost, is_async=is_async))


def take_at_door(request: Any, cost: int, find: Find) -> Flow[Decision]:
    """Take what is asked at a door. If it refuses, earlier doors give back what they took."""
    return count(Operation.TAKE, request, cost, find, is_door=True)


def count(
    operation: Operation, who: Who, cost: int, find: Find, is_door: bool = False
) -> Flow[Decision]:
    """One operation on what is asked, all or nothing. `cost` is that of the request as a whole."""
    check_cost(cost)
    check_who(who)
    store = active_store()
    ledger = None if isinstance(who, str) else counted(who)
    if store is None:
        taken = Taken(Decision((), cost))
    else:
        try:
            taken = yield from _counted(operation, store, ledger, cost, find, is_door)
        except CatalogUnavailable:
            denied = conf.STORE_FAILURE == "deny" and shared.mode != "shadow"
            decision = Decision((), cost, unavailable=denied, spread=random.random())
            taken = Taken(decision, local=True)
        if ledger is not None and is_door:
            if not taken.decision.allowed:
                if not ledger.undecided:
                    taken = yield from _nothing_taken(store, ledger, who, taken)
            elif ledger.waiting is not None:
                first = yield from settle(who)
                taken = taken if first.allowed else Taken(first, again=True)
    if not taken.decision.allowed:
        taken = _noted(who, taken)
    if ledger is not None and operation is not Operation.PEEK:
        # Also if nothing applies today: views rely on it.
        plain(who).ratelimit = ledger.everything(taken.decision)  # type: ignore[attr-defined]
    if taken.group.slots:
        record(operation, taken, ledger)
    if operation is Operation.TAKE and is_heard():
        yield from tell(who, taken)
    return taken.decision


def _noted(who: Who, taken: Taken) -> Taken:
    """A refusal, with what its receipt tells."""
    decision = taken.decision
    if decision.occasion is not None:
        return taken
    owner = taken.group.owner
    tenant = owner.key if owner is not None and owner.kind == "tenant" else taken.tenant
    request = None if isinstance(who, str) else plain(who)
    address = "" if request is None else address_of(request)
    path = getattr(request, "path", "")
    occasion = Occasion(tenant, address, taken.group.scope, path, taken.local)
    told = Decision(
        decision.outcomes, decision.cost, decision.unavailable, decision.spread, occasion
    )
    return taken._replace(decision=told)


def _nothing_taken(store: Store, ledger: Ledger, request: Any, taken: Taken) -> Flow[Taken]:
    """Refused at a door: what earlier ones took is given back, and who waits has taken nothing."""
    known = taken.local and not taken.decision.unavailable
    if known and (ledger.waiting is not None or ledger.by_doors()[1]):
        storms.begin(address_of(request))
    ledger.waiting = None
    before = ledger.by_doors()[0].slots
    return taken._replace(
        decision=(yield from nothing_taken(store, ledger, taken.decision)),
        given_back=frozenset(slot.limit.name for slot in before),
    )


def give_back(request: Any, refused: Decision) -> Flow[Decision]:
    """Give back what doors took of a request that is refused after all.

    Gives the refusal, with what is left by then.
    """
    store, ledger = active_store(), counted(request)
    ledger.waiting = None
    if store is None:
        return refused
    return (yield from nothing_taken(store, ledger, refused))


def _counted(
    operation: Operation,
    store: Store,
    ledger: Ledger | None,
    said: int,
    find: Find,
    is_door: bool,
) -> Flow[Taken]:
    takes = operation is Operation.TAKE
    stale = None
    for attempt in range(TRIES):
        found = find(stale)
        group, costs, tenant, set_cost = found if isinstance(found, Asked) else (yield from found)
        cost = said if set_cost is None else set_cost
        # One who has no limits may have been given some, which only the store knows.
        if not group.slots and not group.versions:
            return Taken(Decision((), cost))
        missing = ledger.missing(group, costs) if ledger and takes else costs
        if missing is not costs and any(costs) and not any(missing):
            assert ledger is not None
            return Taken(ledger.of(group, cost), again=True)
        # Somebody edits faster than this reads: what was read last is as good as any.
        asked = replace(group, versions=()) if attempt == TRIES - 1 else group
        answer = yield ask(store, operation, asked, missing, ledger)
        stale = answer.stale
        if stale is None:
            break
    if ledger and takes and not answer.allowed and not answer.unavailable:
        answer, missing = yield from all_anew(store, ledger, group, costs, missing, answer)
    decision = decide(operation, group, missing, cost, answer)
    if ledger and operation is not Operation.PEEK:
        ledger.enter(Entry(group, _taken(operation, missing, decision), decision, is_door))
    _report(decision)
    return Taken(decision, group, tenant, answer.local, shares=answer.shares)


def _taken(operation: Operation, costs: list[int], decision: Decision) -> list[int] | None:
    """What an operation has taken of a request's limits, as far as its other doors go by it."""
    if operation is Operation.TAKE and decision.allowed:
        return costs
    return [-cost for cost in costs] if operation is Operation.REFUND else None


def forget(who: Who) -> Flow[None]:
    """Reset a caller's own buckets."""
    store = active_store()
    if store is not None:
        caller, _ = yield Effect(caller_of, acaller_of, (who,))
        group = yield from limits_of((yield from catalog()), caller, None)
        subject = own_subject(caller)
        slots = tuple(slot for slot in group.slots if slot.subject == subject)
        yield Effect(store.reset, store.areset, (Group(slots), (subject,)))


def active_store() -> Store | None:
    """The store, None if nothing is counted: switched off, or a dummy cache."""
    if shared.mode != "off":
        return get_store()
    hearing.start_if_due()
    return None


def check_cost(cost: object) -> None:
    """Raises ValueError unless it is a whole number of units, 0 or more."""
    if not isinstance(cost, int) or isinstance(cost, bool) or cost < 0:
        raise ValueError(f"A cost is a whole number of units, 0 or more, not {cost!r}.")


def _report(decision: Decision) -> None:
    for outcome in decision.outcomes:
        if not outcome.allowed and outcome.limit.is_shadow:
            logger.info("The limit %r, in shadow, would have refused.", outcome.name)
