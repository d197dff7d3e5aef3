"""What is remembered of a request while it is counted, by whichever doors it passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest

from .effects import Flow
from .limits import Decision, Outcome
from .stores.base import Group, Slot


class Entry(NamedTuple):
    """What was counted at once: `costs` are what was taken, None if nothing was."""

    group: Group
    costs: Sequence[int] | None
    decision: Decision
    is_door: bool


class Counted:
    """What one request has taken so far, so that the same limit is counted once."""

    __slots__ = (
        "_at_doors",
        "_costs",
        "_first",
        "_outcomes",
        "now",
        "passing",
        "told",
        "undecided",
        "waiting",
    )

    def __init__(self) -> None:
        # What was counted first. Most requests pass one door only, and need no more than that.
        self._first: Entry | None = None
        self._costs: dict[tuple[str, str], int] = {}
        self._outcomes: dict[tuple[str, str], Outcome] = {}
        # What of the costs doors took, and from where. Not what shadow limits took.
        self._at_doors: dict[tuple[str, str], tuple[Slot, int]] = {}
        # The take of a first door that waits for the second one.
        self.waiting: Callable[[], Flow[Decision]] | None = None
        # What usage/ was told of this request.
        self.told: Any = None
        # The time in microseconds, as long as somebody has a clock of its own for it.
        self.now: int | None = None
        # As long as a refusal may not be the last word: then nothing is given back for it yet.
        self.undecided = False
        # The last pass through throttles that count each pass: see throttling/passes.py.
        self.passing: Any = None

    def enter(self, entry: Entry) -> None:
        """Remember what was counted, for the other doors that the request passes."""
        if self._first is None and not self._outcomes:
            self._first = entry
        else:
            self._open()
            self._enter(entry)

    def _open(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            self._enter(first)

    def _enter(self, entry: Entry) -> None:
        if entry.costs is not None:
            self.took(entry.group, entry.costs, entry.is_door)
        self._saw(entry.group, entry.decision)

    def missing(self, group: Group, costs: list[int]) -> list[int]:
        """What is still to be taken of each limit, for the request to have cost so much."""
        self._open()
        if not self._costs:
            return costs
        return [
            max(0, cost - self._costs.get(name_of(slot), 0))
            for slot, cost in zip(group.slots, costs, strict=True)
        ]

    def raised(self, group: Group, costs: Sequence[int]) -> list[int]:
        """What was taken of those limits that are now asked for more.

        One in shadow takes what is left, so that it is not known how much it took.
        """
        self._open()
        before = [
            0 if slot.limit.is_shadow else self._costs.get(name_of(slot), 0) for slot in group.slots
        ]
        return [had if had < cost else 0 for had, cost in zip(before, costs, strict=True)]

    def took(self, group: Group, costs: Sequence[int], is_door: bool = False) -> None:
        """Remember what was taken, or with a cost below 0 given back."""
        self._open()
        for slot, cost in zip(group.slots, costs, strict=True):
            name = name_of(slot)
            total = self._costs[name] = max(0, self._costs.get(name, 0) + cost)
            _, before = self._at_doors.get(name, (slot, 0))
            by_doors = min(before + cost if is_door else before, total)
            if not slot.limit.is_shadow:
                self._at_doors[name] = (slot, by_doors)

    def by_doors(self) -> tuple[Group, list[int]]:
        """What doors took and nobody has given back."""
        self._open()
        taken = [(slot, cost) for slot, cost in self._at_doors.values() if cost]
        return Group(tuple(slot for slot, _ in taken)), [cost for _, cost in taken]

    def keep(self) -> None:
        """A view has run: whatever is refused later, what doors took was not for nothing."""
        if self._first is not None:
            self._first = self._first._replace(is_door=False)
        self._at_doors.clear()

    def anew(self, names: Iterable[tuple[str, str]]) -> None:
        """What was taken of these limits is over, and the request takes of them anew."""
        self._open()
        for name in names:
            self._costs.pop(name, None)
            self._outcomes.pop(name, None)
            self._at_doors.pop(name, None)

    def _saw(self, group: Group, decision: Decision) -> None:
        """Remember what there is to publish."""
        names = {id(slot.limit): name_of(slot) for slot in group.slots}
        for outcome in decision.outcomes:
            self._outcomes[names[id(outcome.limit)]] = outcome

    def update(self, newer: Iterable[tuple[Slot, Outcome]]) -> dict[int, Outcome]:
        """Remember what is left by now; gives it by the id() of what was told before.

        A refusal stays one.
        """
        self._open()
        before = self._outcomes.copy()
        for slot, outcome in newer:
            name = name_of(slot)
            if name not in before or before[name].allowed:
                self._outcomes[name] = outcome
        return {id(told): self._outcomes[name] for name, told in before.items()}

    def of(self, group: Group, cost: int) -> Decision:
        """The decision on limits of which as much was taken before."""
        self._open()
        found = [self._outcomes.get(name_of(slot)) for slot in group.slots]
        return Decision(tuple(outcome for outcome in found if outcome is not None), cost)

    def everything(self, last: Decision) -> Decision:
        """The last decision, with the limits of the earlier ones."""
        if self._first is not None:
            return last if self._first.decision.outcomes == last.outcomes else self._all(last)
        return last if len(self._outcomes) == len(last.outcomes) else self._all(last)

    def _all(self, last: Decision) -> Decision:
        self._open()
        outcomes = tuple(self._outcomes.values())
        return Decision(outcomes, last.cost, last.unavailable, last.spread, last.occasion)


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
