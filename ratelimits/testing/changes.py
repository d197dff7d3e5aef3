"""What stands in the place of rows, and of limits in code, while blocks last.

Blocks may end in any order, as tasks and fixtures do: each takes away what is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any
from unittest.mock import patch

from ratelimits import entering, rows
from ratelimits.catalog import merged
from ratelimits.edits import is_editing, shared
from ratelimits.entering import InCode
from ratelimits.limits import Limit
from ratelimits.stores.base import Group, Slot

from .instead import Instead

# The plan that everybody has who is given other limits.
SLUG = "override"


class Change:
    """Changes nothing by itself. `before` gives what there is without it."""

    def __init__(self, instead: Instead) -> None:
        self.instead = instead

    def plans(self, before: Callable[[], rows.Plans]) -> rows.Plans:
        return before()

    def own(self, before: Callable[[str], rows.Own], key: str) -> rows.Own:
        return before(key)


# The innermost block's is the last one.
in_force: list[Change] = []
_installed = ExitStack()


@contextmanager
def put_in_force(change: Change) -> Iterator[None]:
    if not in_force:
        _install()
    in_force.append(change)
    try:
        yield
    finally:
        in_force[:] = [other for other in in_force if other is not change]
        if not in_force:
            _installed.close()


def _install() -> None:
    for where, name, changed in (
        (rows, "load_plans", _plans(rows.load_plans)),
        (rows, "load_tenant", _own(rows.load_tenant)),
        (entering, "_group", _in_code(entering._group)),
    ):
        _installed.enter_context(patch.object(where, name, changed))


def _plans(load: Callable[[], rows.Plans]) -> Callable[[], rows.Plans]:
    def load_plans() -> rows.Plans:
        changed = load
        for change in in_force:
            changed = partial(change.plans, changed)
        return changed()

    return load_plans


def _own(load: Callable[[str], rows.Own]) -> Callable[[str], rows.Own]:
    def load_tenant(key: str) -> rows.Own:
        changed = load
        for change in in_force:
            changed = partial(change.own, changed)
        return changed(key)

    return load_tenant


def _in_code(group: Any) -> Any:
    def changed(found: InCode, mode: str, versions: tuple[tuple[str, str], ...]) -> Group:
        change = _of_code(found.slot.limit.name)
        if change is not None and change.instead.is_none:
            return Group((), versions, scope=found.slot.limit.scope, owner=found.owner)
        made: Group = group(change.changed(found) if change else found, mode, versions)
        return made

    return changed


class ForEverybody(Change):
    """Its limit, and those of such blocks around it, in the place of all rows."""

    def plans(self, before: Callable[[], rows.Plans]) -> rows.Plans:
        # In a transaction that edits there is a database.
        switch = rows.load_switch() if is_editing() else shared.switch
        limits = {SLUG: self._limits()}
        return rows.Plans(limits, default=SLUG, anonymous=None, service=(), switch=switch)

    def own(self, before: Callable[[str], rows.Own], key: str) -> rows.Own:
        return rows.Own()

    def _limits(self) -> tuple[Limit, ...]:
        limits: tuple[Limit, ...] = ()
        for change in in_force:
            if isinstance(change, ForEverybody):
                limits = change.instead.among(limits)
            if change is self:
                break
        return limits


class OfPlan(Change):
    def __init__(self, instead: Instead, slug: str) -> None:
        super().__init__(instead)
        self._slug = slug

    def plans(self, before: Callable[[], rows.Plans]) -> rows.Plans:
        plans, slug = before(), self._slug
        if slug not in plans.limits:
            raise LookupError(f'There is no plan "{slug}" whose limits could be overridden.')
        return replace(plans, limits={**plans.limits, slug: self.instead.among(plans.limits[slug])})


class OfTenant(Change):
    def __init__(self, instead: Instead, key: str) -> None:
        super().__init__(instead)
        self._key = key

    def own(self, before: Callable[[str], rows.Own], key: str) -> rows.Own:
        own = before(key)
        if key != self._key:
            return own
        limits, _ = merged(rows.load_plans(), own)
        replaced = {limit.name: limit for limit in limits}
        made = self.instead.instead_of(replaced.get(self.instead.name))
        return replace(own, limits=(*own.limits, (made, None)))


class OfCode(Change):
    def __init__(self, instead: Instead) -> None:
        super().__init__(instead)
        # The same one again, since stores keep by it what they know of it.
        self.changed = lru_cache(maxsize=4096)(self._change)

    def _change(self, found: InCode) -> InCode:
        limit = self.instead.instead_of(found.slot.limit)
        return found._replace(slot=Slot(limit, found.slot.subject))


def _of_code(name: str) -> OfCode | None:
    """What the innermost block says of a limit in code."""
    changes = (change for change in reversed(in_force) if isinstance(change, OfCode))
    return next((change for change in changes if change.instead.name == name), None)
