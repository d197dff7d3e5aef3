"""Other limits for a block, whatever plans, tenants and the code say."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any
from unittest.mock import patch

from ratelimits import entering, rows
from ratelimits.catalog import merged
from ratelimits.conf import conf
from ratelimits.edits import forget_rows, is_editing, shared
from ratelimits.entering import InCode
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Group, Slot

from . import counts
from .blocks import Block, going_before
from .instead import Instead

# The plan that everybody has who is given other limits.
SLUG = "override"


def override(
    rate: str | Rate,
    *,
    name: str = "api",
    plan: str | None = None,
    tenant: str | None = None,
    in_code: bool = False,
    scope: str | None = None,
    burst: int | None = None,
    algorithm: str | None = None,
    mode: str = "enforce",
) -> Block[None]:
    """Put a limit in force for a block, in which all buckets are full.

    For everybody: this one, and those of such blocks around it, instead of all that plans,
    tenants and the service have; no database is asked. With the slug of a `plan` or the key of
    a `tenant`: instead of its limit of this name, or beside the others. With `in_code`: instead
    of the limit that `@ratelimit` or a throttle class publishes by this name. A scope and an
    algorithm that are not said are those of the limit that it replaces.

    Raises ValueError for what can't be counted. A plan that is not there is a LookupError, when
    limits are read.
    """
    if sum((plan is not None, tenant is not None, in_code)) > 1:
        raise ValueError("Say one of plan, tenant and in_code; for several, put one in another.")
    instead = Instead.of(rate, name, scope, burst, algorithm, mode)
    if in_code:
        return Block(partial(_begin, partial(_change_in_code, instead)))
    if plan is not None:
        return Block(partial(_begin, partial(_change_plan, instead, plan)))
    if tenant is not None:
        return Block(partial(_begin, partial(_change_tenant, instead, tenant)))
    return Block(partial(_begin, partial(_change_all, instead)))


def _begin(change: Callable[[ExitStack], None], stack: ExitStack) -> None:
    stack.callback(forget_rows)
    change(stack)
    if conf.MODE == "off":
        # As tests of something else have it.
        stack.enter_context(going_before(MODE="enforce"))
    counts.begin(stack)
    forget_rows()


def _change_all(instead: Instead, stack: ExitStack) -> None:
    outer = getattr(rows.load_plans, "__self__", None)
    limits = outer.limits if isinstance(outer, Everybody) else ()
    everybody = Everybody(instead.among(limits))
    stack.enter_context(patch.object(rows, "load_plans", everybody.load_plans))
    stack.enter_context(patch.object(rows, "load_tenant", everybody.load_tenant))


class Everybody:
    """Stands in the place of all rows."""

    def __init__(self, limits: tuple[Limit, ...]) -> None:
        self.limits = limits

    def load_plans(self) -> rows.Plans:
        # In a transaction that edits there is a database.
        switch = rows.load_switch() if is_editing() else shared.switch
        limits = {SLUG: self.limits}
        return rows.Plans(limits, default=SLUG, anonymous=None, service=(), switch=switch)

    def load_tenant(self, key: str) -> rows.Own:
        return rows.Own()


def _change_plan(instead: Instead, slug: str, stack: ExitStack) -> None:
    before = rows.load_plans

    def load_plans() -> rows.Plans:
        plans = before()
        if slug not in plans.limits:
            raise LookupError(f'There is no plan "{slug}" whose limits could be overridden.')
        return replace(plans, limits={**plans.limits, slug: instead.among(plans.limits[slug])})

    stack.enter_context(patch.object(rows, "load_plans", load_plans))


def _change_tenant(instead: Instead, key: str, stack: ExitStack) -> None:
    before = rows.load_tenant

    def load_tenant(asked: str) -> rows.Own:
        own = before(asked)
        if asked != key:
            return own
        limits, _ = merged(rows.load_plans(), own)
        replaced = {limit.name: limit for limit in limits}
        made = instead.instead_of(replaced.get(instead.name))
        return replace(own, limits=(*own.limits, (made, None)))

    stack.enter_context(patch.object(rows, "load_tenant", load_tenant))


def _change_in_code(instead: Instead, stack: ExitStack) -> None:
    before: Any = entering._group

    # The same one again, since stores keep by it what they know of it.
    @lru_cache(maxsize=4096)
    def changed(found: InCode) -> InCode:
        limit = instead.instead_of(found.slot.limit)
        return found._replace(slot=Slot(limit, found.slot.subject))

    def group(found: InCode, mode: str, versions: tuple[tuple[str, str], ...]) -> Group:
        if found.slot.limit.name == instead.name:
            found = changed(found)
            if instead.is_none:
                return Group((), versions, scope=found.slot.limit.scope, owner=found.owner)
        made: Group = before(found, mode, versions)
        return made

    stack.enter_context(patch.object(entering, "_group", group))
