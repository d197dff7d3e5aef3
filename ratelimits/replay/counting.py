"""One tenant's calls on the limits of one plan, counted as live traffic is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ratelimits.algorithms import ALGORITHMS, Ask, Operation, run
from ratelimits.limits import Limit
from ratelimits.stores.base import MOST

from .calls import Calls
from .paths import Kind
from .sliding_log import SlidingLog

MINUTE = 60_000_000
_LOG: Any = SlidingLog()


@dataclass
class Refusals:
    """The calls that would have been refused, when, and by which limits."""

    count: int = 0
    first: int = 0
    last: int = 0
    # By the time at which each minute began.
    minutes: Counter[int] = field(default_factory=Counter)
    limits: Counter[str] = field(default_factory=Counter)
    # Calls that limits in shadow would refuse if they were enforced.
    shadowed: Counter[str] = field(default_factory=Counter)

    def add(self, at: int, names: Sequence[str]) -> None:
        if not self.count:
            self.first = at
        self.count += 1
        self.last = at
        self.minutes[at // MINUTE * MINUTE] += 1
        self.limits.update(names)


def refusals(limits: Sequence[Limit], kinds: Sequence[Kind], calls: Calls) -> Refusals:
    """All refusals of a plan."""
    found = Refusals()
    for at, fitted, asked in _exceeded(_relevant(limits, kinds, calls), kinds, calls):
        over = [limit for limit, fits in zip(asked, fitted, strict=True) if not fits]
        firm = [limit.name for limit in over if not limit.is_shadow]
        if firm:
            found.add(at, firm)
        found.shadowed.update(limit.name for limit in over if limit.is_shadow)
    return found


def refuses_none(limits: Sequence[Limit], kinds: Sequence[Kind], calls: Calls) -> bool:
    """Whether a plan lets all of the calls through."""
    firm = [limit for limit in limits if not limit.is_shadow]
    return not any(_exceeded(_relevant(firm, kinds, calls), kinds, calls))


def _relevant(limits: Sequence[Limit], kinds: Sequence[Kind], calls: Calls) -> list[Limit]:
    """Without those that could take all of the calls at once, which most limits of most can."""
    units: Counter[str] = Counter()
    for number, count in Counter(calls.kinds).items():
        units[kinds[number].scope] += count * kinds[number].cost
    total = sum(units.values())
    return [
        limit for limit in limits if limit.capacity < (units[limit.scope] if limit.scope else total)
    ]


def _exceeded(
    limits: Sequence[Limit], kinds: Sequence[Kind], calls: Calls
) -> Iterator[tuple[int, Sequence[bool], Sequence[Limit]]]:
    """The calls that exceed a limit: when, and which of the limits that were asked they fit."""
    if not limits:
        return
    asked = {number: _asked(limits, kinds[number]) for number in set(calls.kinds)}
    states: list[Any] = [None] * len(limits)
    for at, number in zip(calls.times, calls.kinds, strict=True):
        places, asks = asked[number]
        result = run(Operation.TAKE, asks, [states[place] for place in places], at)
        for place, state in zip(places, result.states, strict=True):
            states[place] = state
        if not all(result.fitted):
            yield at, result.fitted, [limits[place] for place in places]


def _asked(limits: Sequence[Limit], kind: Kind) -> tuple[list[int], list[Ask]]:
    """Which of the limits a kind of call asks, and what."""
    places = [place for place, each in enumerate(limits) if each.scope in ("", kind.scope)]
    cost = min(kind.cost, MOST)
    return places, [_ask(limits[place], cost) for place in places]


def _ask(limit: Limit, cost: int) -> Ask:
    is_log = limit.algorithm == "sliding_log"
    algorithm = _LOG if is_log else ALGORITHMS[limit.algorithm]
    return Ask(algorithm, limit.terms, cost, not limit.is_shadow)
