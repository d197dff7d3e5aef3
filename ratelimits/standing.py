"""Where a caller stands: the limits in force, where each comes from, and how full it is.

For people who look, by the admin or a command: nothing is taken, and the store is asked once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from . import rows
from .algorithms import ALGORITHMS, Operation
from .catalog import Caller, Catalog, merged, own_subject, plan_of
from .edits import catalog
from .effects import Flow, drive
from .flow import TRIES, active_store
from .limits import Limit
from .returning import ask
from .stores.base import Answer, Group, Store


class Origin(NamedTuple):
    """Where a limit comes from: "plan", "default", "anonymous", "own" or "service".

    `plan` is the slug of the plan in force. An own limit may replace the plan's, and may end:
    `then` is what is in force from that time on, if anything.
    """

    kind: str
    plan: str | None = None
    replaces: Limit | None = None
    expires: datetime | None = None
    then: Limit | None = None


@dataclass(frozen=True)
class Level:
    """How full a bucket is at this moment, in units.

    `next` is the time until any unit is left, `full` until all are, if nobody calls meanwhile.
    Zero: they are already. None: never.
    """

    capacity: int
    left: int
    next: timedelta | None
    full: timedelta | None

    @property
    def used(self) -> int:
        return self.capacity - self.left


@dataclass(frozen=True)
class InForce:
    """One limit, in the mode that is in force.

    `level` is None if nothing is counted of it for this caller, or if nobody can tell just now.
    """

    limit: Limit
    origin: Origin
    level: Level | None = None

    @property
    def refuses(self) -> bool:
        """Whether it would refuse one more unit now."""
        return self.level is not None and self.level.left < 1 and self.limit.mode == "enforce"

    @property
    def wait(self) -> timedelta | None:
        """Until it lets one more unit pass; None if it does now, or never will."""
        return self.level.next if self.level is not None and self.refuses else None


@dataclass(frozen=True)
class Standing:
    """All limits of a caller, in all scopes: its own or its plan's, then those of the service.

    `plan` is the slug of its plan, `plan_is` "plan" if it was given that, else "default" or
    "anonymous". `mode` is that of all limits; `counted` is false if nothing is counted at all,
    `known` if the store could not be asked. Limits for each address have a level only for a
    caller without a tenant.
    """

    caller: Caller
    plan: str | None
    plan_is: str
    limits: tuple[InForce, ...]
    mode: str
    counted: bool
    known: bool

    @property
    def refusing(self) -> tuple[InForce, ...]:
        """The limits that would refuse one more unit now."""
        return tuple(found for found in self.limits if found.refuses)


def standing_of(who: str | Caller) -> Standing:
    """Where a tenant stands, by its key, or a caller without one by its address.

    Raises CatalogUnavailable if the limits can't be read. That the store is away is no error.
    """
    caller = Caller(who) if isinstance(who, str) else who
    kept, store = drive(catalog()), active_store()
    answered = Answered() if store is None else _ask(kept, store, caller)
    plans, own = kept.made_of(caller)
    sold = _sold(plans, own)
    subject = own_subject(caller)
    limits = tuple(answered.of(*found, subject) for found in _origins(plans, own, sold))
    counted, known = store is not None, answered.answer is not None
    return Standing(caller, sold.plan, sold.kind, limits, kept.mode, counted, known)


def _sold(plans: rows.Plans, own: rows.Own | None) -> Origin:
    slug = plan_of(plans, own)
    if own is None:
        return Origin("anonymous" if slug == plans.anonymous else "default", slug)
    return Origin("plan" if own.plan == slug else "default", slug)


def _origins(
    plans: rows.Plans, own: rows.Own | None, sold: Origin
) -> Iterator[tuple[Limit, Origin]]:
    """All limits of a caller, each with where it comes from."""
    ends = {id(limit): expires for limit, expires in own.limits} if own else {}
    lasting = {limit.name: limit for limit, expires in own.limits if not expires} if own else {}
    of_plan = {limit.name: limit for limit in plans.limits.get(sold.plan or "", ())}
    limits, _ = merged(plans, own)
    for limit in limits:
        if id(limit) not in ends:
            yield limit, sold
            continue
        expires, replaced = ends[id(limit)], of_plan.get(limit.name)
        then = lasting.get(limit.name, replaced) if expires else None
        yield limit, Origin("own", sold.plan, replaced, expires, then)
    for limit in plans.service:
        yield limit, Origin("service")


def _ask(kept: Catalog, store: Store, caller: Caller) -> Answered:
    for attempt in range(TRIES):
        group = kept.warm(caller, None) or kept.load(caller, None)
        # Somebody edits faster than this reads: what was read last is as good as any.
        asked = replace(group, versions=()) if attempt == TRIES - 1 else group
        answer = drive(_peek(store, asked))
        if answer.stale is None:
            break
        kept.learn(caller, answer.stale)
    return Answered(group, None if answer.local else answer)


def _peek(store: Store, group: Group) -> Flow[Answer]:
    # When all that a limit can give would pass, it is full again.
    costs = [slot.limit.capacity for slot in group.slots]
    answer: Answer = yield ask(store, Operation.PEEK, group, costs)
    return answer


class Answered(NamedTuple):
    """The limits that are counted, and what the store said of them, if it did."""

    group: Group = Group(())
    answer: Answer | None = None

    def of(self, limit: Limit, origin: Origin, subject: str) -> InForce:
        """One limit as it is counted, those of the service apart from the caller's."""
        is_service = origin.kind == "service"
        for place, slot in enumerate(self.group.slots):
            if slot.limit.name == limit.name and (slot.subject != subject) == is_service:
                return InForce(slot.limit, origin, self._level(place))
        return InForce(limit, origin)

    def _level(self, place: int) -> Level | None:
        limit, answer = self.group.slots[place].limit, self.answer
        state = None if answer is None else answer.states[place]
        if answer is None or state is None:
            return None
        capacity = limit.capacity
        read = ALGORITHMS[limit.algorithm].read(state, limit.terms, capacity, answer.now)
        left = min(capacity, max(0, read.remaining))
        return Level(capacity, left, _time(0 if left else read.next), _time(read.wait))


def _time(microseconds: int | None) -> timedelta | None:
    return None if microseconds is None else timedelta(microseconds=microseconds)
