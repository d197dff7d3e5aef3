"""From the rows of an upstream to its terms. Of the client half, only this knows the ORM."""

from __future__ import annotations

from math import isfinite
from typing import Any

from django.core.exceptions import ValidationError

from ratelimits.logs import once
from ratelimits.pacing.calls import SECOND
from ratelimits.pacing.terms import LONGEST, Pace, Terms
from ratelimits.rates import Rate
from ratelimits.rows import is_left_out, is_storable, model, write_alias
from ratelimits.texts import gettext as _
from ratelimits.validation import MAX_BURST, MOST_GUARD, pace_errors, statuses_of

DEFAULTS = Terms("")


def load_terms(slug: str) -> Terms | None:
    """Read an upstream; None if there is none of this slug. May raise Django's database errors."""
    if not is_storable(slug):
        return None
    rows = model("Upstream").objects.using(write_alias()).prefetch_related("limits")
    row = rows.filter(slug=slug).first()
    return None if row is None else terms_of(row)


def slugs(using: str) -> list[str]:
    """Of all upstreams."""
    return list(model("Upstream").objects.using(using).order_by().values_list("slug", flat=True))


def terms_of(row: Any) -> Terms:
    """What an upstream's row and its limits mean. What means nothing is left out, logged once."""
    faults = _faults_of_upstream(row)
    if faults:
        told = " ".join(faults.values())
        once.error(f"{row._meta.label} {row.pk} {row.slug!r} is partly left out: {told}")
    limits = sorted(row.limits.all(), key=lambda limit: limit.pk)
    return Terms(
        row.slug,
        tuple(_pace(limit) for limit in limits if not is_left_out(limit, fault_of(limit))),
        DEFAULTS.max_wait if "max_wait" in faults else min(row.max_wait, LONGEST),
        DEFAULTS.guard if "guard" in faults else row.guard,
        DEFAULTS.statuses if "retry_statuses" in faults else statuses_of(row.retry_statuses),
        row.base_url,
    )


def _pace(row: Any) -> Pace:
    quota = row.rate.quota
    burst = quota if row.burst is None else row.burst
    # A rename keeps what was used.
    ident = str(row.pk)
    return Pace(ident, row.name, row.kind, quota, row.rate.window * SECOND, burst, row.per)


def fault_of(row: Any) -> str:
    """Why a row of an upstream or of a limit of one means nothing, in one line; empty if not."""
    if not hasattr(row, "rate"):
        return " ".join(_faults_of_upstream(row).values())
    if not isinstance(row.rate, Rate):
        return _("%r is not a rate.") % (row.rate,)
    if row.kind not in ("bucket", "window"):
        return _("%r is neither a bucket nor a window.") % (row.kind,)
    if row.per not in ("credential", "tenant"):
        return _("%r has no share.") % (row.per,)
    if row.burst is not None and not 1 <= row.burst <= MAX_BURST:
        return _("The burst is out of range.")
    return " ".join(str(error) for error in pace_errors(row.rate, row.burst, row.kind).values())


def _faults_of_upstream(row: Any) -> dict[str, str]:
    """By field."""
    faults = {}
    if not isfinite(row.max_wait) or row.max_wait < 0:
        faults["max_wait"] = _("%r is no time to wait.") % row.max_wait
    if not 0 <= row.guard <= MOST_GUARD:
        faults["guard"] = _("%r is no guard.") % row.guard
    try:
        statuses_of(row.retry_statuses)
    except ValidationError:
        faults["retry_statuses"] = _("%r are no statuses.") % row.retry_statuses
    return faults
