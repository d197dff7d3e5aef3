"""From takes to lines of usage. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ratelimits.limits import Decision, Owner
from ratelimits.stores.base import Group
from ratelimits.stores.usage_entries import NUMBERS, Entry, label_of, split_label
from ratelimits.telling import Taken

# What is known of nobody in particular.
NOBODY = Owner("by", "")
# The places of an entry's numbers; those of the units follow.
ALLOWED, REFUSED, SHADOW = range(3)
UNITS = 3
TOTAL = ""


def lines_of(take: Taken) -> Iterator[tuple[str, int, int]]:
    """The label, the place of the number, and the units of each line of a take."""
    group, decision = take.group, take.decision
    is_allowed = decision.allowed
    scope, would_refuse = group.scope, False
    for outcome in decision.outcomes:
        label = label_of(outcome.limit.name, scope)
        if is_allowed:
            yield label, ALLOWED, outcome.cost
        if not outcome.allowed:
            is_shadow = outcome.limit.is_shadow
            would_refuse = would_refuse or is_shadow
            yield label, SHADOW if is_shadow else REFUSED, outcome.cost
    yield TOTAL, ALLOWED if is_allowed else REFUSED, decision.cost
    if would_refuse:
        yield TOTAL, SHADOW, decision.cost


def note(entry: Entry, take: Taken) -> None:
    """Count a take in an entry. Hot: a background thread does it for each request."""
    for label, place, units in lines_of(take):
        numbers = entry.get(label)
        if numbers is None:
            numbers = entry[label] = [0] * NUMBERS
        numbers[place] += 1
        if units != 1:
            numbers[place + UNITS] += units - 1


class Request:
    """What was told of one request so far: it may be counted at several doors.

    The same limit counts once, at all its units; a request as a whole is the last caller's that
    it turned out to be, and once refused it stays refused.
    """

    def __init__(self, first: Taken) -> None:
        self._told: dict[Owner, Entry] = {}
        self._owner = owner_of(first)
        note(self._told.setdefault(self._owner, {}), first)

    def again(self, take: Taken) -> Changes:
        """Another take of the same request. What this changes in what was told."""
        before = {owner: _copy(entry) for owner, entry in self._told.items()}
        labels = {split_label(label_of(limit, ""))[0] for limit in take.given_back}
        for entry in self._told.values():
            for label, numbers in entry.items():
                if label and split_label(label)[0] in labels:
                    numbers[ALLOWED] = numbers[ALLOWED + UNITS] = 0
        self._move(owner_of(take))
        self._note(self._told.setdefault(self._owner, {}), take)
        return _difference(before, self._told)

    def _move(self, owner: Owner) -> None:
        if owner != self._owner:
            total = self._told[self._owner].pop(TOTAL, None)
            self._owner = owner
            if total is not None:
                self._told.setdefault(owner, {})[TOTAL] = total

    def _note(self, entry: Entry, take: Taken) -> None:
        for label, place, units in lines_of(take):
            numbers = entry.setdefault(label, [0] * NUMBERS)
            extra = numbers[place] + numbers[place + UNITS]
            if label:
                # Of a limit only what it lacks is asked for; but a refusal is of the whole.
                extra = extra + units if place == ALLOWED else max(extra, units)
            else:
                extra = max(extra, units)
            numbers[place], numbers[place + UNITS] = 1, extra - 1
            if place == REFUSED:
                numbers[ALLOWED] = numbers[ALLOWED + UNITS] = 0
        total = entry[TOTAL]
        if total[REFUSED]:
            total[ALLOWED] = total[ALLOWED + UNITS] = 0


Changes = Mapping[Owner, Entry]


def owner_of(take: Taken) -> Owner:
    return take.group.owner or NOBODY


def units_of(group: Group, decision: Decision, sign: int) -> Changes:
    """Units that were charged or given back apart from any request."""
    entry = {
        label_of(outcome.limit.name, group.scope): _units(sign * outcome.cost)
        for outcome in decision.outcomes
    }
    return {group.owner or NOBODY: {TOTAL: _units(sign * decision.cost), **entry}}


def _units(units: int) -> list[int]:
    numbers = [0] * NUMBERS
    numbers[ALLOWED + UNITS] = units
    return numbers


def _copy(entry: Entry) -> Entry:
    return {label: list(numbers) for label, numbers in entry.items()}


def _difference(before: Changes, after: Changes) -> Changes:
    changes: dict[Owner, Entry] = {}
    for owner in {**before, **after}:
        old, new = before.get(owner, {}), after.get(owner, {})
        for label in {**old, **new}:
            zeros = [0] * NUMBERS
            pairs = zip(old.get(label, zeros), new.get(label, zeros), strict=True)
            numbers = [now - then for then, now in pairs]
            if any(numbers):
                changes.setdefault(owner, {})[label] = numbers
    return changes
