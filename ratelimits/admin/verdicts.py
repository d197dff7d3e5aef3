"""Whether a caller is refused, and why, in sentences to be read out."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from ratelimits.standing import InForce, Standing
from ratelimits.stores import counts_alone
from ratelimits.words import count, lasting

from .tenant_usage import Lately


def verdict(standing: Standing, hour: Lately | None) -> Iterator[str]:
    """The answer to "is it refused, and why", now and in the last hour; None: nobody knows."""
    yield from _now(standing)
    if hour is None:
        yield _("What it did in the last hour is unavailable.")
    else:
        yield hour.sentence
        yield from _elsewhere(standing, hour)
    if standing.known and counts_alone():
        yield _("Each process counts in its own memory: how full others are is not seen here.")


def _now(standing: Standing) -> Iterator[str]:
    if not standing.counted:
        yield _("Nothing is limited now: counting is switched off for the whole service.")
    elif not standing.known:
        yield _(
            "How full the limits are is unavailable: the store that holds the counts can't be "
            "reached."
        )
    elif not standing.limits:
        yield _("No limit applies.")
    elif standing.mode == "shadow":
        yield _("Nothing is refused now: all limits of the service are in shadow, and only count.")
    elif not standing.refusing:
        yield _("Nothing is refused now.")
    for found in standing.refusing:
        yield _refusal(found)


def _refusal(found: InForce) -> str:
    limit = found.limit
    told = {"name": limit.name, "rate": limit.rate.describe(), "scope": limit.scope}
    if found.wait is None:
        text = _("Refused for good by “%(name)s” (%(rate)s).")
    elif limit.scope:
        text = _(
            "Refused now, for requests of “%(scope)s”, by “%(name)s” (%(rate)s): used up, the "
            "next one passes in %(wait)s."
        )
    else:
        text = _(
            "Refused now by “%(name)s” (%(rate)s): used up, the next request passes in %(wait)s."
        )
    return text % {**told, "wait": lasting(found.wait) if found.wait else ""}


def _elsewhere(standing: Standing, hour: Lately) -> Iterator[str]:
    """Limits that refused lately, and are none of those that are listed."""
    listed = {found.limit.name for found in standing.limits}
    for name, counts in hour.by_limit.items():
        if counts.refused and name not in listed:
            yield _(
                "“%(name)s” refused %(number)s in the last hour. It is in no plan: it is written "
                "in the code of a view, or is not there any more."
            ) % {"name": name, "number": count(counts.refused)}
