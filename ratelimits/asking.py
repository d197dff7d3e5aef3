"""What is asked of the store for a request: the limits that apply, and what each is to give."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from asgiref.sync import sync_to_async

from .catalog import Caller, Catalog
from .edits import catalog, is_anyone_editing, shared
from .effects import Effect, Flow
from .stores.base import Group
from .who import Counted, Who, acaller_of, caller_of


class Asked(NamedTuple):
    """The limits that apply, and what is asked of each.

    `cost` is the whole request's if an operator set another one than the code says.
    """

    group: Group
    costs: list[int]
    tenant: str | None = None
    cost: int | None = None


NOTHING = Asked(Group(()), [])

# Gives what is asked, at once if nothing has to be waited for; a second time if the store knows
# newer versions, which it is told.
Find = Callable[["tuple[str, ...] | None"], "Asked | Flow[Asked]"]


class OfPlan:
    """Asks for the limits that the plan of a caller has for a scope; None is all scopes.

    What an operator set as the cost of a request of that scope goes before `cost`, unless it is
    an amount rather than a request. Who it is may be told; to find out for a request may have to
    wait, and `is_async` says whether others can go on meanwhile.
    """

    __slots__ = ("cost", "is_amount", "is_async", "known", "scope", "who")

    def __init__(
        self,
        who: Who,
        scope: str | None,
        cost: int,
        *,
        is_async: bool = False,
        is_amount: bool = False,
        known: Counted | None = None,
    ) -> None:
        self.who, self.scope, self.cost, self.known = who, scope, cost, known
        self.is_async, self.is_amount = is_async, is_amount

    def __call__(self, stale: tuple[str, ...] | None) -> Asked | Flow[Asked]:
        """See Find."""
        known = self.known
        if known is None:
            if self.is_async and not isinstance(self.who, str):
                return self._ask_who(stale)
            known = self.known = caller_of(self.who)
        if stale is None and not is_anyone_editing():
            group = shared.warm(known.caller, self.scope)
            if group is not None:
                return self._asked(shared, known, group)
        return self._look(known, stale)

    def _ask_who(self, stale: tuple[str, ...] | None) -> Flow[Asked]:
        self.known = yield Effect(caller_of, acaller_of, (self.who,))
        found = self(stale)
        return found if isinstance(found, Asked) else (yield from found)

    def _look(self, known: Counted, stale: tuple[str, ...] | None) -> Flow[Asked]:
        caller, exempt = known
        if exempt and caller.tenant is None:
            return NOTHING
        kept = yield from catalog()
        if stale is not None:
            kept.learn(caller, stale)
        return self._asked(kept, known, (yield from limits_of(kept, caller, self.scope)))

    def _asked(self, kept: Catalog, known: Counted, group: Group) -> Asked:
        caller, exempt = known
        count = len(group.slots)
        if exempt and not group.own:
            return NOTHING
        if caller.only_address and not count and not kept.is_due():
            return NOTHING
        if group.cost is None or self.is_amount:
            return Asked(group, [self.cost] * count, caller.tenant)
        return Asked(group, [group.cost] * count, caller.tenant, group.cost)


def limits_of(kept: Catalog, caller: Caller, scope: str | None) -> Flow[Group]:
    """The limits of a caller; a scope of None is all scopes."""
    group: Group | None = kept.warm(caller, scope)
    if group is None:
        group = yield Effect(kept.load, sync_to_async(kept.load), (caller, scope))
    return group
