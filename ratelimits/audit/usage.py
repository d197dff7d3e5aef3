"""Tenants that use more than their plan sells, and rows of tenants that nobody sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ratelimits import rows
from ratelimits.allowing import most_in
from ratelimits.doctor.findings import Finding
from ratelimits.exceptions import StoreUnavailable
from ratelimits.limits import Limit
from ratelimits.stores import counts_alone
from ratelimits.usage import Peak, peaks, totals
from ratelimits.words import count

from .naming import _, found, ngettext

# Tenants that are asked for in one round trip.
CHUNK = 500
DAY, ALL_KEPT = 24, 72
MINUTE, HOUR = 60, 3600


def look() -> Iterator[Finding]:
    try:
        known = not counts_alone() and _is_anything_known()
    except StoreUnavailable as error:
        text = _("What tenants used can't be read: %s") % error
        yield Finding("usage", "problem", text, value={"known": False})
        return
    if not known:
        text = _("nothing is known of what tenants used in the last days")
        yield Finding("usage", "ok", text, value={"known": False})
        return
    yield from _findings()


def _is_anything_known() -> bool:
    return any(hour.total.requests for hour in totals(hours=ALL_KEPT, minutes=1).hours)


def _findings() -> Iterator[Finding]:
    plans = rows.load_plans()
    above: list[str] = []
    unseen: list[str] = []
    for tenants in _chunks():
        lately = dict(zip(tenants, peaks([key for key, _plan in tenants], DAY), strict=True))
        for (key, plan), used in lately.items():
            sold = plans.limits.get(plan or plans.default or "", ())
            above += [f"{key}: {told}" for told in _above(sold, used)]
        idle = [key for (key, _plan), used in lately.items() if not used]
        before = zip(idle, peaks(idle, ALL_KEPT), strict=True)
        unseen += [key for key, used in before if not used]
    yield found(
        "tenants.above_plan",
        above,
        _("no tenant used more in the last day than its plan sells"),
        ngettext(
            "%d limit of a plan was exceeded in the last day by a tenant that has a larger one",
            "%d limits of plans were exceeded in the last day by tenants that have larger ones",
            len(above),
        ),
        _("What they have instead is theirs for good or until a date. Sell them another plan?"),
    )
    yield found(
        "tenants.unseen",
        unseen,
        _("every tenant that has a row was seen in the last days"),
        ngettext(
            "%d tenant that has a row was not seen in the last three days",
            "%d tenants that have a row were not seen in the last three days",
            len(unseen),
        ),
        _("Look whether its key is right. In a busy hour those who call least are not seen."),
    )


def _chunks() -> Iterator[Sequence[tuple[str, str | None]]]:
    """The keys of all tenants that have a row, and their plans' slugs."""
    model: Any = rows.model("Tenant")
    tenants = model.objects.using(rows.write_alias()).order_by("key")
    every = tenants.values_list("key", "plan__slug").iterator()
    while chunk := list(islice(every, CHUNK)):
        yield chunk


def _above(sold: Sequence[Limit], used: Mapping[str, Peak]) -> Iterator[str]:
    for limit in sold:
        peak = used.get(limit.name, Peak())
        in_minute, in_hour = most_in(limit, MINUTE), most_in(limit, HOUR)
        told = {"name": limit.name, "rate": limit.rate}
        if in_minute is not None and peak.minute > in_minute:
            text = _("%(units)s in a minute of “%(name)s” (%(rate)s)")
            yield text % {**told, "units": count(peak.minute)}
        elif in_hour is not None and peak.hour > in_hour:
            text = _("%(units)s in an hour of “%(name)s” (%(rate)s)")
            yield text % {**told, "units": count(peak.hour)}
