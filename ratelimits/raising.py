"""Raising one limit of a tenant for a while: what is written, and what it goes back to."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Any

from .algorithms.base import ceil_div
from .limits import Limit
from .overrides import sold_to
from .rates import Rate
from .rows import limit_of, model
from .validation import MAX_BURST

COPIED = ("scope", "algorithm", "mode", "on_store_failure")


def raised(tenant: Any, name: str, rate: Rate, until: datetime, reason: str = "") -> Any:
    """The unsaved row that gives a tenant another rate of one of its limits, until then.

    An own limit that lasts has its old rate again afterwards; any other gives way to the plan's.
    Raises ValueError if the tenant has no limit of this name, CatalogUnavailable if nobody
    can tell.
    """
    row = tenant.limits.filter(name=name).first()
    in_force = row.afterwards() if row is not None and row.is_over else row
    before = limit_of(in_force) if in_force is not None else None
    if before is None:
        row, before = _like_the_plans(tenant, name, row)
    elif row.expires_at is None:
        row.rate_after, row.burst_after, row.reason_after = str(row.rate), row.burst, row.reason
    row.burst = burst_for(rate, before)
    row.rate, row.expires_at, row.reason = rate, until, reason
    return row


def _like_the_plans(tenant: Any, name: str, row: Any) -> tuple[Any, Limit]:
    """A row for a limit of the plan; one that is there counted for nothing."""
    _, sold = sold_to(tenant.key)
    if name not in sold:
        raise ValueError(f"The tenant has no usable limit {name!r}.")
    row = row or model("TenantLimit")(tenant=tenant, name=name)
    for field in COPIED:
        setattr(row, field, getattr(sold[name], field))
    row.rate_after, row.burst_after, row.reason_after = "", None, ""
    return row, sold[name]


def burst_for(rate: Rate, before: Limit) -> int | None:
    """A burst that has grown as the rate has; None, the rate's quota, where it was that before."""
    old = before.rate
    if before.burst is None or not rate.quota or not old.quota or not rate.window:
        return None
    more = Fraction(rate.quota, rate.window) / Fraction(old.quota, old.window)
    return min(MAX_BURST, ceil_div(before.burst * more.numerator, more.denominator))


def lowers(rate: Rate, before: Rate) -> bool:
    """Whether a rate is less than the one before. A calendar month is compared with another."""
    if rate.quota is None:
        return False
    if before.quota is None:
        return True
    if rate.is_month or before.is_month:
        return rate.is_month and before.is_month and rate.quota < before.quota
    return Fraction(rate.quota, rate.window) < Fraction(before.quota, before.window)


def end(row: Any) -> None:
    """Take the end of a limit as reached: it is what it was before, or it is deleted."""
    kept = row.afterwards()
    if kept is None:
        row.delete()
    else:
        kept.save()
