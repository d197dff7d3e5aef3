"""What is remembered of a request while it is counted, by whichever doors it passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.http import HttpRequest

from .effects import Flow
from .limits import Decision, Outcome
from .stores.base import Group, Slot


class Counted:
    """What one request has taken so far, so that the same limit is counted once."""

    __slots__ = ("at_doors", "costs", "outcomes", "waiting")

    def __init__(self) -> None:
        self.costs: dict[tuple[str, str], int] = {}
        self.outcomes: dict[tuple[str, str], Outcome] = {}
        # What of the costs doors took, and from where. Not what shadow limits took.
        self.at_doors: dict[tuple[str, str], tuple[Slot, int]] = {}
        # The take of a first door that waits for the second one.
        self.waiting: Callable[[], Flow[Decision]] | None = None

    def missing(self, group: Group, costs: list[int]) -> list[int]:
        """What is still to be taken of each limit, for the request to have cost so much."""
        if not self.costs:
            return costs
        return [
            max(0, cost - self.costs.get(name_of(slot), 0))
            for slot, cost in zip(group.slots, costs, strict=True)
        ]

    def raised(self, group: Group, costs: Sequence[int]) -> list[int]:
        """What was taken of those limits that are now asked for more.

        One in shadow takes what is left, so that it is not known how much it took.
        """
        before = [
            0 if slot.limit.is_shadow else self.costs.get(name_of(slot), 0) for slot in group.slots
        ]
        return [had if had < cost else 0 for had, cost in zip(before, costs, strict=True)]

    def took(self, group: Group, costs: Sequence[int], is_door: bool = False) -> None:
        """Remember what was taken, or with a cost below 0 given back."""
        for slot, cost in zip(group.slots, costs, strict=True):
            name = name_of(slot)
            total = self.costs[name] = max(0, self.costs.get(name, 0) + cost)
            _, before = self.at_doors.get(name, (slot, 0))
            by_doors = min(before + cost if is_door else before, total)
            if not slot.limit.is_shadow:
                self.at_doors[name] = (slot, by_doors)

    def by_doors(self) -> tuple[Group, list[int]]:
        """What doors took and nobody has given back."""
        taken = [(slot, cost) for slot, cost in self.at_doors.values() if cost]
        return Group(tuple(slot for slot, _ in taken)), [cost for _, cost in taken]

    def keep(self) -> None:
        """A view has run: whatever is refused later, what doors took was not for nothing."""
        self.at_doors.clear()

    def saw(self, group: Group, decision: Decision) -> None:
        """Remember what there is to publish."""
        names = {id(slot.limit): name_of(slot) for slot in group.slots}
        for outcome in decision.outcomes:
            self.outcomes[names[id(outcome.limit)]] = outcome

    def update(self, newer: Iterable[tuple[Slot, Outcome]]) -> dict[int, Outcome]:
        """Remember what is left by now; gives it by the id() of what was told before.

        A refusal stays one.
        """
        before = self.outcomes.copy()
        for slot, outcome in newer:
            name = name_of(slot)
            if name not in before or before[name].allowed:
                self.outcomes[name] = outcome
        return {id(told): self.outcomes[name] for name, told in before.items()}

    def of(self, group: Group, cost: int) -> Decision:
        """The decision on limits of which as much was taken before."""
        names = map(name_of, group.slots)
        return Decision(tuple(self.outcomes[name] for name in names if name in self.outcomes), cost)

    def everything(self, last: Decision) -> Decision:
        """The last decision, with the limits of the earlier ones."""
        if len(self.outcomes) == len(last.outcomes):
            return last
        return Decision(tuple(self.outcomes.values()), last.cost, last.unavailable, last.spread)


def name_of(slot: Slot) -> tuple[str, str]:
    """What tells the buckets of one request apart."""
    return slot.subject, slot.limit.ident or slot.limit.name


def plain(request: Any) -> HttpRequest:
    """Django's request, also behind DRF's."""
    inner: HttpRequest = getattr(request, "_request", request)
    return inner


def counted(request: Any) -> Counted:
    """What was counted of a request so far."""
    inner: Any = plain(request)
    found = getattr(inner, "_ratelimits", None)
    if found is None:
        found = inner._ratelimits = Counted()
    assert isinstance(found, Counted)
    return found


def is_preflight(request: Any) -> bool:
    """Whether a browser asks, before a CORS request, if it may (Fetch standard)."""
    return (
        request.method == "OPTIONS"
        and "HTTP_ORIGIN" in request.META
        and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in request.META
    )


def publishes_elsewhere(request: Any) -> bool:
    """Whether the middleware publishes, which then is the only one to do so."""
    return getattr(plain(request), "_ratelimits_middleware", False)


def decision_of(request: Any) -> Decision | None:
    """All that was decided about a request so far."""
    return getattr(plain(request), "ratelimit", None)
