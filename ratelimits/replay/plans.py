"""The plans that are tried, from the smallest to the largest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from ratelimits import rows
from ratelimits.catalog import in_force
from ratelimits.limits import Limit
from ratelimits.plan_files.reading import Wanted

# Days of a calendar month, in the long run.
MONTH = Fraction(146097, 4800) * 86400
ENDLESS = Fraction(10**30)

Limits = Mapping[str, tuple[Limit, ...]]


def of_database() -> Limits:
    """The limits that count on each plan, by its slug; the smallest plan first."""
    return _ordered(rows.load_plans())


def of_file(wanted: Wanted) -> Limits:
    """See of_database(); those that a file asks for."""
    limits: dict[str, list[Limit]] = {}
    for path, item in wanted.items.items():
        if path[0] == "plans":
            own = limits.setdefault(path[1], [])
            limit = rows.limit_of(item.row) if len(path) > 2 else None
            own += [] if limit is None else [limit]
    plans = {slug: tuple(own) for slug, own in limits.items()}
    return _ordered(rows.Plans(plans, None, None, ()))


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
