"""What is no fault in a list of customers, and yet hardly what was meant."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils import timezone
from django.utils.translation import gettext, ngettext

from ratelimits import rows
from ratelimits.checks.base import meant, quoted, shown

from .customers import NAMED, Customers
from .kinds import OWN_LIMITS


def hints_of(found: Customers, alias: str) -> Iterator[str]:
    """Sentences for whoever imports a list."""
    for name, count in found.beside.items():
        told = ngettext(
            "%(column)s: %(count)d tenant gets one limit more, since its plan has no limit "
            "%(name)s.",
            "%(column)s: %(count)d tenants get one limit more, since their plans have no limit "
            "%(name)s.",
            count,
        ) % {"column": NAMED + name, "count": count, "name": shown(name)}
        best = meant(name, _names(alias))
        # One that other plans have is meant as it is.
        if best is not None and best != name:
            told += " " + gettext("Did you mean %s?") % quoted([best])
        yield told
    expired = _expired(found)
    if expired:
        yield (
            ngettext(
                "%d own limit of these has expired and limits nobody. A list renews none.",
                "%d own limits of these have expired and limit nobody. A list renews none.",
                expired,
            )
            % expired
        )


def _names(alias: str) -> list[str]:
    limits = rows.model("PlanLimit").objects.using(alias)
    return list(limits.order_by("name").values_list("name", flat=True).distinct())


def _expired(found: Customers) -> int:
    now = timezone.now()
    mine = (item.row for item in found.items.values() if item.kind is OWN_LIMITS)
    return sum(row.expires_at is not None and row.expires_at <= now for row in mine)
