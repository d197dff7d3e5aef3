"""The plans that are tried, from the smallest to the largest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ratelimits import rows
from ratelimits.catalog import in_force
from ratelimits.limits import Limit
from ratelimits.plan_files.reading import Wanted

# Days of a calendar month, in the long run.
MONTH = Fraction(146097, 4800) * 86400
ENDLESS = Fraction(10**30)

Limits = Mapping[str, tuple[Limit, ...]]


@dataclass(frozen=True)
class Sold:
    """The limits that count on each plan, by its slug, the smallest plan first.

    `costs` are what calls of a scope take, whatever the code says.
    """

    plans: Limits
    costs: Mapping[str, int]


def of_database() -> Sold:
    """What is sold now."""
    plans = rows.load_plans()
    return Sold(_ordered(plans), plans.costs)


def of_file(wanted: Wanted) -> Sold:
    """What a file asks for."""
    limits: dict[str, list[Limit]] = {}
    costs: dict[str, int] = {}
    for path, item in wanted.items.items():
        if path[0] == "scope_costs":
            costs[path[1]] = item.row.cost
        if path[0] == "plans":
            own = limits.setdefault(path[1], [])
            limit = rows.limit_of(item.row) if len(path) > 2 else None
            own += [] if limit is None else [limit]
    plans = {slug: tuple(own) for slug, own in limits.items()}
    return Sold(_ordered(rows.Plans(plans, None, None, ())), costs)


def _ordered(plans: rows.Plans) -> Limits:
    found = {slug: tuple(in_force(plans, rows.Own(slug), None)[0]) for slug in plans.limits}
    return {slug: found[slug] for slug in sorted(found, key=lambda slug: (size(found[slug]), slug))}


def size(limits: Iterable[Limit]) -> tuple[Fraction, Fraction, Fraction]:
    """What plans are ordered by.

    How many units a second it lets through in the long run, which its tightest limit decides;
    then its smallest burst, both of the limits of all scopes and in force; then the limits of
    single scopes.
    """
    firm = [limit for limit in limits if not limit.is_shadow]
    general = [limit for limit in firm if not limit.scope]
    bursts = min((Fraction(limit.capacity) for limit in general), default=ENDLESS)
    return _rate(general), bursts, _rate(firm)


def _rate(limits: Iterable[Limit]) -> Fraction:
    rates = (Fraction(limit.quota) / (limit.rate.window or MONTH) for limit in limits)
    return min(rates, default=ENDLESS)
