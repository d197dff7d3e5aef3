"""What callers are told of all their limits at once: those of all scopes, and how full they are."""

from __future__ import annotations

from typing import Any

from .algorithms import Operation
from .asking import Asked, OfPlan
from .effects import Flow, drive
from .exceptions import CatalogUnavailable
from .flow import count
from .limits import Limit, Outcome
from .publishing.headers import Policies, policies_for, policy_of, shown_reset
from .stores.base import Slot


def budget_of(request: Any) -> dict[str, Any]:
    """The limits of a request's caller, ready for JSON. Takes nothing; asks the store once.

    `available` is false if it can't be told just now how full they are: then `remaining` and
    `reset` (whole seconds) are null. Left out is what refuses nobody or is nobody's own: limits
    in shadow, without a rate, and for everyone; and limits in code, which belong to their views.
    """
    slots, outcomes, known = drive(_asked(request))
    policies = policies_for(tuple(slot.limit for slot in slots))
    told = [_told(slots, place, label, policies, outcomes) for place, label in policies.listed]
    available = known and all(each["remaining"] is not None for each in told)
    return {"available": available, "limits": told}


def _asked(request: Any) -> Flow[tuple[tuple[Slot, ...], dict[int, Outcome], bool]]:
    """All limits that count, what is left of them by the id() of each, and if they are known."""
    of_plan = OfPlan(request, None, 1)
    slots: tuple[Slot, ...] = ()
    known = True

    def find(stale: tuple[str, ...] | None) -> Flow[Asked]:
        nonlocal slots, known
        try:
            found = of_plan(stale)
            asked = found if isinstance(found, Asked) else (yield from found)
        except CatalogUnavailable:
            known = False
            raise
        slots = asked.group.slots
        return asked

    # A single unit, as of most requests, of each limit: whose scope it is does not matter.
    decision = yield from count(Operation.PEEK, request, 1, find)
    return slots, {id(outcome.limit): outcome for outcome in decision.outcomes}, known


def _told(
    slots: tuple[Slot, ...],
    place: int,
    label: str,
    policies: Policies,
    outcomes: dict[int, Outcome],
) -> dict[str, Any]:
    limit = slots[place].limit
    outcome = outcomes.get(id(limit))
    return {
        "name": policies.names[place],
        "scope": limit.scope,
        "limit": limit.quota,
        "window": _window(limit),
        "burst": limit.capacity,
        "remaining": None if outcome is None else outcome.remaining,
        "reset": None if outcome is None else shown_reset(outcome),
        "policy": policy_of(limit, label),
        "description": limit.rate.describe(),
    }


def _window(limit: Limit) -> int | None:
    """In seconds; None for a calendar month, which has no fixed length."""
    return None if limit.rate.is_month else limit.rate.window
