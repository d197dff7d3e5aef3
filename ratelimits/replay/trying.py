"""All tenants of a log on one plan, and on which they would have been refused nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .calls import Calls, Log
from .counting import Refusals, refusals, refuses_none
from .paths import Kind
from .plans import Limits


@dataclass(frozen=True)
class Tried:
    """A tenant's calls on the plan that was tried.

    `smallest` is the smallest plan that would have refused none of them; None: all refuse some.
    """

    tenant: str
    calls: Calls
    refused: Refusals
    smallest: str | None


def try_plan(log: Log, plans: Limits, slug: str, tell: Callable[[int], None]) -> list[Tried]:
    """Every tenant; those who are refused most come first. Tells how many calls were counted."""
    found, done = [], 0
    for tenant, calls in log.tenants.items():
        refused = refusals(plans[slug], log.kinds, calls)
        smallest = _smallest(plans, slug, refused, log.kinds, calls)
        found.append(Tried(tenant, calls, refused, smallest))
        done += len(calls)
        tell(done)
    return sorted(found, key=lambda tried: (-tried.refused.count, -len(tried.calls), tried.tenant))


def _smallest(
    plans: Limits, tried: str, refused: Refusals, kinds: Sequence[Kind], calls: Calls
) -> str | None:
    for slug, limits in plans.items():
        known = slug == tried
        if not refused.count if known else refuses_none(limits, kinds, calls):
            return slug
    return None
