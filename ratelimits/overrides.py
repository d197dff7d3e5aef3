"""What a tenant's own limits do to the limits of its plan."""

from __future__ import annotations

from .catalog import Caller, plan_of
from .edits import catalog
from .effects import drive
from .limits import Limit


def sold_to(key: str) -> tuple[str | None, dict[str, Limit]]:
    """The plan that a tenant has, by its slug, and the plan's limits by their names.

    Raises CatalogUnavailable if the limits can't be read.
    """
    plans, own = drive(catalog()).made_of(Caller(key))
    slug = plan_of(plans, own)
    return slug, {limit.name: limit for limit in plans.limits.get(slug or "", ())}


def replaced_by(key: str, name: str) -> str:
    """The limit of a tenant's plan that an own one of this name replaces, as `pro/api 100/m`.

    Empty if it replaces none.
    """
    slug, sold = sold_to(key)
    return named(slug or "", sold[name]) if name in sold else ""


def named(slug: str, limit: Limit) -> str:
    return f"{slug}/{limit.name} {limit.rate}"
