"""Limits of the service that are smaller than what was sold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from django.db.models import Count

from ratelimits import rows
from ratelimits.allowing import DAY, sold_in
from ratelimits.catalog import merged
from ratelimits.doctor.findings import Finding
from ratelimits.limits import Limit
from ratelimits.words import count

from .naming import _, found, ngettext


class Buyers(NamedTuple):
    """Limits, and how many tenants have exactly these."""

    limits: Sequence[Limit]
    number: int


def look() -> Iterator[Finding]:
    alias = rows.write_alias()
    plans = rows.load_plans()
    buyers = list(_buyers(plans, alias))
    service = [limit for limit in plans.service if _counts(limit)]
    everyone = [limit for limit in service if limit.per == "everyone"]
    small = [told for limit in everyone if (told := _below_sum(limit, buyers))]
    yield found(
        "service.sum",
        small,
        _("the limits of the service for everyone are above what was sold, as far as rows tell"),
        ngettext(
            "%d limit of the service lets less through than the tenants' limits add up to",
            "%d limits of the service let less through than the tenants' limits add up to",
            len(small),
        ),
        _("Whoever comes when it is used up gets a 503, whatever they paid for. Raise it."),
    )
    addresses = [limit for limit in service if limit.per == "address"]
    low = [told for limit in addresses if (told := _below_plans(limit, plans.limits))]
    yield found(
        "service.address",
        low,
        _("the limits of the service for each address are above every plan"),
        ngettext(
            "%d limit for each address lets less through than a plan",
            "%d limits for each address let less through than a plan",
            len(low),
        ),
        _("A tenant that calls from a single address can't use what it bought. Raise it."),
    )


def _counts(limit: Limit) -> bool:
    return limit.mode == "enforce" and not limit.rate.is_unlimited


def _buyers(plans: rows.Plans, alias: str) -> Iterator[Buyers]:
    """The tenants that have a row: by plan, and those with limits of their own one by one."""
    numbers = Counter(_plans_of(rows.model("Tenant").objects.using(alias), plans.default))
    own = rows.model("Tenant").objects.using(alias).filter(limits__isnull=False).distinct()
    tenants = own.select_related("plan").prefetch_related("limits").order_by("pk")
    for tenant in tenants.iterator(chunk_size=1000):
        said = rows.Own(tenant.plan and tenant.plan.slug, tuple(rows.own_limits(tenant)))
        limits, _until = merged(plans, said)
        numbers[said.plan or plans.default] -= 1
        yield Buyers(limits, 1)
    for slug, number in numbers.items():
        if number > 0:
            yield Buyers(plans.limits.get(slug or "", ()), number)


def _plans_of(tenants: Any, default: str | None) -> Mapping[str | None, int]:
    found: Counter[str | None] = Counter()
    for slug, number in tenants.order_by().values_list("plan__slug").annotate(n=Count("pk")):
        found[slug or default] += number
    return found


def _allows(limits: Iterable[Limit], scope: str, seconds: Fraction) -> Fraction | None:
    """What limits let through of the requests that a scope covers; None if anything."""
    covering = (limit for limit in limits if _counts(limit) and limit.scope in ("", scope))
    return sold_in(covering, seconds)


def _below_sum(service: Limit, buyers: Iterable[Buyers]) -> str:
    """What to say of a limit for everyone that is below the sum; "" if it is not."""
    seconds = Fraction(service.rate.window or 30 * DAY)
    total = Fraction(0)
    for each in buyers:
        # What is unlimited has no number to add.
        total += (_allows(each.limits, service.scope, seconds) or 0) * each.number
    if total <= service.quota:
        return ""
    told = _("“%(name)s” (%(rate)s), while %(total)s were sold")
    return told % {"name": service.name, "rate": service.rate, "total": count(ceil(total))}


def _below_plans(service: Limit, plans: Mapping[str, Sequence[Limit]]) -> str:
    seconds = Fraction(service.rate.window or 30 * DAY)
    larger = []
    for slug, limits in plans.items():
        units = _allows(limits, service.scope, seconds)
        if units is not None and units > service.quota:
            larger.append(slug)
    if not larger:
        return ""
    told = _("“%(name)s” (%(rate)s): %(plans)s")
    return told % {"name": service.name, "rate": service.rate, "plans": ", ".join(larger)}
