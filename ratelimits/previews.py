"""What an edit of a plan's limits would change, by what its tenants used in the last day."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from django.db.models import Count, Q
from django.utils import timezone

from . import rows, usage
from .exceptions import StoreUnavailable
from .limits import Limit
from .usage import Peak

# So many tenants are looked at, the busiest if a plan has more: a page waits for it.
LOOKED_AT = 500
# Of so many callers it is asked whether they are on the plan, to find the busiest.
BUSIEST = 2000
HOURS = 24
MINUTE, HOUR, MONTH = 60, 3600, 28 * 86400

# By a tenant's key, what each limit let pass.
Peaks = Mapping[str, Mapping[str, Peak]]


@dataclass(frozen=True)
class Change:
    """A limit before and after, None if there is none.

    `over` are the keys of those who used more than it will let pass; None if nothing counted what
    it covers. `own` is how many tenants have a limit of their own in its place.
    """

    name: str
    before: Limit | None
    after: Limit | None
    own: int = 0
    over: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class Preview:
    """All changes. Of `tenants` on the plan so many were `looked_at`, the busiest of late.

    Besides were those callers `without_row` that have it too. `known` is false if what they use
    could not be read; then nobody is over anything.
    """

    changes: tuple[Change, ...]
    tenants: int
    looked_at: int
    without_row: int
    known: bool


def preview_of(plan: Any, after: Iterable[Limit]) -> Preview:
    """What becomes of a plan with these limits. Nothing is changed."""
    limits = rows.model("PlanLimit").objects.using(rows.write_alias()).filter(plan=plan)
    now = {limit.name: limit for row in limits if (limit := rows.limit_of(row)) is not None}
    then = {limit.name: limit for limit in after}
    names = [name for name in {**now, **then} if now.get(name) != then.get(name)]
    on_plan = tenants_of(plan)
    number = on_plan.count()
    try:
        keys, others = _keys(plan, on_plan, number) if names else ([], [])
        used = usage.peaks([*keys, *others], HOURS)
        known = True
    except StoreUnavailable:
        keys, others, used, known = [], [], [], False
    peaks = dict(zip([*keys, *others], used, strict=True))
    own, counts = _own(on_plan, names, peaks)
    changes = [
        Change(
            name,
            now.get(name),
            then.get(name),
            counts.get(name, 0),
            _over(now, then.get(name), {k: p for k, p in peaks.items() if (name, k) not in own}),
        )
        for name in names
    ]
    return Preview(tuple(changes), number, len(keys), len(others), known)


def tenants_of(plan: Any) -> Any:
    """The rows of those on a plan; on the default one also those without a plan of their own."""
    mine = Q(plan=plan)
    if plan.is_default:
        mine |= Q(plan=None)
    return rows.model("Tenant").objects.using(rows.write_alias()).filter(mine)


def _keys(plan: Any, on_plan: Any, number: int) -> tuple[list[str], list[str]]:
    """Whom to look at: rows on the plan, and callers without a row. Raises StoreUnavailable."""
    some = number > LOOKED_AT
    busiest = _busiest() if some or plan.is_default else []
    if some:
        found = set(on_plan.filter(key__in=busiest).values_list("key", flat=True))
        keys = [key for key in busiest if key in found][:LOOKED_AT]
    else:
        keys = list(on_plan.values_list("key", flat=True))
    return keys, _without_row(busiest)[:LOOKED_AT] if plan.is_default else []


def _busiest() -> list[str]:
    owners = [used.owner for used in usage.top(BUSIEST).callers]
    return [owner.key for owner in owners if owner.kind == "tenant" and rows.is_storable(owner.key)]


def _without_row(keys: Sequence[str]) -> list[str]:
    known = rows.model("Tenant").objects.using(rows.write_alias()).filter(key__in=keys)
    rest = set(keys).difference(known.values_list("key", flat=True))
    return [key for key in keys if key in rest]


def _own(
    on_plan: Any, names: Sequence[str], keys: Collection[str]
) -> tuple[set[tuple[str, str]], dict[str, int]]:
    """Which of the keys have limits of these names themselves, and how many on the plan do."""
    limits = rows.model("TenantLimit").objects.using(rows.write_alias()).order_by()
    alive = limits.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), name__in=names)
    found = alive.filter(tenant__key__in=keys).values_list("name", "tenant__key")
    of_plan = alive.filter(tenant__in=on_plan.order_by()).values("name")
    return set(found), dict(of_plan.annotate(n=Count("pk")).values_list("name", "n"))


def _over(now: Mapping[str, Limit], after: Limit | None, peaks: Peaks) -> tuple[str, ...] | None:
    """Who used more than a limit will let pass."""
    if after is None or after.mode == "off" or after.rate.is_unlimited:
        return ()
    before = now.get(after.name)
    if before is not None and _is_looser(before, after):
        return ()
    # What it counted so far, or others did of the same requests.
    same = before is not None and before.scope == after.scope and not before.rate.is_unlimited
    counted = [before] if before is not None and same else list(now.values())
    names = [limit.name for limit in counted if limit.scope == after.scope]
    if not names:
        return None
    return tuple(
        key
        for key, used in peaks.items()
        if any(name in used and _exceeds(used[name], after) for name in names)
    )


def _is_looser(before: Limit, after: Limit) -> bool:
    """Whether it refuses nothing that passes now."""
    if before.mode != after.mode or before.rate.is_unlimited:
        return False
    alike = (before.algorithm, before.scope) == (after.algorithm, after.scope)
    slower = Fraction(before.quota, _window(before)) <= Fraction(after.quota, _window(after))
    return alike and slower and before.capacity <= after.capacity


def _exceeds(peak: Peak, limit: Limit) -> bool:
    """Whether more passed in a minute or in an hour than the limit means to let pass in it."""
    return peak.minute > _most(limit, MINUTE) or peak.hour > _most(limit, HOUR)


def _most(limit: Limit, seconds: int) -> Fraction:
    return max(Fraction(limit.capacity), Fraction(limit.quota * seconds, _window(limit)))


def _window(limit: Limit) -> int:
    return MONTH if limit.rate.is_month else limit.rate.window
