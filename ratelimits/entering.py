"""What a request has to take at a view: from all limits of its rules together, or from none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async

from .addresses import address_of
from .asking import NOTHING, Asked, Find, OfPlan, limits_of
from .bodies import field_of, keeping_body
from .catalog import Caller, moded
from .conf import conf
from .edits import catalog, shared
from .effects import Effect, Flow, given
from .exceptions import CatalogUnavailable
from .flow import check_cost, take_at_door
from .keys import digest
from .limits import Decision, Owner
from .requests import is_preflight, name_of, plain
from .rules import PLAN, Rule, rate_of
from .stores.base import Group, Slot
from .tenants import by_user, is_exempt, tenant_of

# Who a caller may be known as, the best first.
OWNERS = ("tenant", "address", "by")
# For these kinds of `by` a look at the request's fields is enough.
PURE = ("ip", "header:")
# One who has no limits, of whom it can be asked what an operator set for everybody.
NOBODY = Caller(None, only_address=True)


class InCode(NamedTuple):
    """A limit in code, and as whom people know the caller."""

    slot: Slot
    owner: Owner


def enter(rules: Sequence[Rule], request: Any, is_async: bool = False) -> Flow[Decision]:
    """Take from all limits of the rules together, or from none."""
    finders: list[Find] = []
    said: list[int] = []
    for rule in rules:
        if rule.applies(request):
            find = Effect(_find, sync_to_async(_find) if _may_wait(rule) else _afind)
            units, finder = yield find._replace(args=(rule, request, is_async))
            said.append(units)
            finders.append(finder)

    def find_all(stale: tuple[str, ...] | None) -> Flow[Asked]:
        parts = []
        for finder in finders:
            found = finder(stale)
            parts.append(found if isinstance(found, Asked) else (yield from found))
        return _together(parts, said)

    asking = finders[0] if len(finders) == 1 else find_all
    return (yield from take_at_door(request, max(said, default=0), asking))


def _together(parts: Sequence[Asked], said: Sequence[int]) -> Asked:
    """One take of all parts; `said` is what the code says that each costs."""
    costs: dict[tuple[str, str], int] = {}
    for group, own, _, _ in parts:
        for slot, cost in zip(group.slots, own, strict=True):
            name = name_of(slot)
            costs[name] = max(cost, costs.get(name, 0))
    joined = _joined(tuple(part.group for part in parts))
    tenant = next((part.tenant for part in parts if part.tenant is not None), None)
    each = [own if part.cost is None else part.cost for part, own in zip(parts, said, strict=True)]
    whole = max(each, default=0)
    return Asked(joined, [costs[name_of(slot)] for slot in joined.slots], tenant, whole)


# The same one again, like _group().
@lru_cache(maxsize=4096)
def _joined(groups: tuple[Group, ...]) -> Group:
    versions = {key: version for group in groups for key, version in group.versions}
    slots = {name_of(slot): slot for group in groups for slot in group.slots}
    scope = next((group.scope for group in groups if group.scope), "")
    # Who is known best is the caller of all of them.
    owners = sorted((group.owner for group in groups if group.owner is not None), key=_rank)
    owner = owners[0] if owners else None
    return Group(tuple(slots.values()), tuple(versions.items()), scope=scope, owner=owner)


def _rank(owner: Owner) -> int:
    return OWNERS.index(owner.kind)


def _may_wait(rule: Rule) -> bool:
    """Whether finding out may do more than look at the request's fields."""
    if rule.rate is PLAN:
        # Whose plan it is comes later.
        return callable(rule.cost)
    asked = (rule.rate, rule.by, rule.cost)
    return bool(conf.EXEMPT) or any(map(callable, asked)) or not str(rule.by).startswith(PURE)


async def _afind(rule: Rule, request: Any, is_async: bool) -> tuple[int, Find]:
    return _find(rule, request, is_async)


def _find(rule: Rule, request: Any, is_async: bool) -> tuple[int, Find]:
    """The cost of a request by a rule, and how to get what is asked."""
    with keeping_body(plain(request)):
        cost = given(rule.cost(request)) if callable(rule.cost) else rule.cost
        check_cost(cost)
        if rule.rate is PLAN:
            return cost, OfPlan(request, rule.scope, cost, is_async=is_async)
        return cost, find_in_code(None if is_exempt(request) else _in_code(rule, request), cost)


def find_in_code(limited: InCode | None, cost: int) -> Find:
    """How to get what a limit in code asks; None asks nothing."""

    def find(stale: tuple[str, ...] | None) -> Asked | Flow[Asked]:
        if stale is not None:
            shared.learn(NOBODY, stale)
        if limited is None:
            return NOTHING
        scope = limited.slot.limit.scope
        if scope:
            return _at_cost(limited, scope, cost)
        return _asked(limited, cost, (shared.of_plans,))

    return find


def _set_for(scope: str) -> Flow[Group]:
    """What operators set for a scope. Limits in code go on without, if that can't be read."""
    kept = yield from catalog()
    try:
        return (yield from limits_of(kept, NOBODY, scope))
    except CatalogUnavailable:
        return Group((), (shared.of_plans,))


def _at_cost(limited: InCode, scope: str, cost: int) -> Flow[Asked]:
    """A limit in code at the cost that is set for its scope."""
    set_for = yield from _set_for(scope)
    if set_for.cost is None:
        return _asked(limited, cost, set_for.versions)
    return _asked(limited, set_for.cost, set_for.versions)._replace(cost=set_for.cost)


def _asked(limited: InCode, cost: int, versions: tuple[tuple[str, str], ...]) -> Asked:
    """A limit in code, that hears of edits too."""
    group = _group(limited, shared.mode, versions)
    return Asked(group, [cost] * len(group.slots))


def _in_code(rule: Rule, request: Any) -> InCode | None:
    rate = given(rule.rate(request)) if callable(rule.rate) else rule.rate
    if rate is None:
        return None
    rate = rate_of(rate)
    subject = None if rate.is_unlimited else _subject(rule, request)
    if subject is None:
        return None
    per, name, owner = subject
    limit = rule.limit(rate)
    if limit.mode == "off":
        return None
    slot = Slot(limit if per == limit.per else replace(limit, per=per), name)
    return InCode(slot, owner)


# The same one again, since stores keep with a group what they made of it and know of it.
@lru_cache(maxsize=4096)
def _group(found: InCode, mode: str, versions: tuple[tuple[str, str], ...]) -> Group:
    slot, owner = found
    return Group(moded((slot,), mode), versions, scope=slot.limit.scope, owner=owner)


def _subject(rule: Rule, request: Any) -> tuple[str, str, Owner] | None:
    """Whose bucket it is, its name in the store, and as whom people know the caller.

    None: do not limit.
    """
    if rule.by == "ip":
        return _by_address(request)
    if is_preflight(request):
        # Nobody in particular asks yet.
        return None
    if callable(rule.by):
        value = given(rule.by(request))
        if value is None:
            return None
        named: tuple[str, ...] = ("by", str(value))
    else:
        named = _named(rule.by, request)
    if not named[-1]:
        return _by_address(request)
    if rule.by == "tenant" or rule.by == "user":
        return "tenant", digest(*named), Owner("tenant", named[-1])
    # What a header or a field holds, or a callable gives, may be secret, or anything at all.
    by = "callable" if callable(rule.by) else str(rule.by)
    return "tenant", digest(*named), Owner("by", by)


def _named(by: str, request: Any) -> tuple[str, ...]:
    """What a bucket is called; nobody is in particular if it ends with an empty text."""
    if by == "tenant":
        return "tenant", tenant_of(request) or ""
    if by == "user":
        return "by", by, by_user(request) or ""
    kind, _, name = by.partition(":")
    value = request.headers.get(name) if kind == "header" else field_of(request, name)
    return "by", by, value or ""


def _by_address(request: Any) -> tuple[str, str, Owner]:
    address = address_of(request)
    return "address", digest("address", address), Owner("address", address)
