"""The rules of tests/vectors/README.md, as naively as they can be written, in exact fractions.

Shares nothing with the package but the values that describe a limit. It is slow, keeps every
hit of a log, and has no store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from copy import deepcopy
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

from ratelimits.algorithms import Operation
from ratelimits.limits import Limit

AHEAD = 10_000_000
SECOND = 1_000_000
WEEK = 7 * 86400 * SECOND
# The first Monday after the epoch.
MONDAY = 4 * 86400 * SECOND


class Told(NamedTuple):
    """What the model answers: waits in microseconds, None for one that is hopeless."""

    allowed: bool
    violated: tuple[str, ...]
    waits: tuple[int | None, ...]
    remaining: tuple[int, ...]


class Counter(ABC):
    """One limit's count. `settle` brings it to a time, the rest is asked of it then."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit

    @property
    def quota(self) -> int:
        return self.limit.quota

    @property
    def most(self) -> int:
        return self.limit.capacity

    @property
    def window(self) -> int:
        return self.limit.rate.window * SECOND

    @abstractmethod
    def settle(self, now: int) -> None: ...

    @abstractmethod
    def in_use(self, now: int) -> Fraction: ...

    @abstractmethod
    def add(self, cost: int, now: int) -> None: ...

    @abstractmethod
    def give_back(self, cost: int) -> None: ...

    @abstractmethod
    def time_of(self, cost: int, now: int) -> int:
        """When a cost fits that does not now, but will."""

    def fits(self, cost: int, now: int) -> bool:
        return cost == 0 or self.in_use(now) + cost <= self.most

    def remaining(self, now: int) -> int:
        return max(0, floor(self.most - self.in_use(now)))

    def wait(self, cost: int, now: int) -> int | None:
        return None if cost > self.most else self.time_of(cost, now) - now


class Bucket(Counter):
    level, time = Fraction(0), -1

    @property
    def rate(self) -> Fraction:
        return Fraction(self.quota, self.window)

    def settle(self, now: int) -> None:
        if self.time < now:
            if self.time >= 0:
                self.level = max(Fraction(0), self.level - self.rate * (now - self.time))
            self.time = now
        elif self.time > now + AHEAD:
            self.time = now
        self.level = min(self.level, Fraction(self.most))

    def in_use(self, now: int) -> Fraction:
        return self.level

    def add(self, cost: int, now: int) -> None:
        self.level = min(self.level + cost, Fraction(self.most))

    def give_back(self, cost: int) -> None:
        self.level = max(self.level - cost, Fraction(0))

    def time_of(self, cost: int, now: int) -> int:
        return self.time + ceil((self.level + cost - self.most) / self.rate)


class Windows(Counter):
    """What fixed and sliding windows share: units by the beginning of their window."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(limit)
        self.start, self.length = -1, -1
        self.used, self.before = 0, 0

    def settle(self, now: int) -> None:
        start = window_of(now, self.window)
        if self.length != self.window:
            self.start, self.length, self.used, self.before = start, self.window, 0, 0
        elif self.start < start:
            self.turn(start)
        elif self.start > start + AHEAD:
            self.start = start

    def turn(self, start: int) -> None:
        """A later window has begun."""
        self.start, self.used = start, 0

    def in_use(self, now: int) -> Fraction:
        return Fraction(self.used)

    def add(self, cost: int, now: int) -> None:
        self.used += min(cost, self.remaining(now))

    def give_back(self, cost: int) -> None:
        self.used = max(0, self.used - cost)

    def time_of(self, cost: int, now: int) -> int:
        return window_end(self.start, self.window)


class Sliding(Windows):
    def turn(self, start: int) -> None:
        self.before = self.used if self.start + self.window == start else 0
        super().turn(start)

    def in_use(self, now: int) -> Fraction:
        elapsed = max(0, now - self.start)
        return Fraction(self.before * (self.window - elapsed), self.window) + self.used

    def time_of(self, cost: int, now: int) -> int:
        """Solves for the moment at which the weight of a window has fallen to the allowance."""
        free = self.quota - cost
        if self.used <= free:
            share = Fraction(free - self.used, self.before)
            return self.start + ceil(self.window * (1 - share))
        share = Fraction(free, self.used)
        return self.start + self.window + ceil(self.window * (1 - share))


class Log(Counter):
    def __init__(self, limit: Limit) -> None:
        super().__init__(limit)
        # One entry a unit, in the order in which they came.
        self.hits: list[int] = []

    def settle(self, now: int) -> None:
        self.hits = [hit if hit <= now + AHEAD else now for hit in self.hits]
        self.hits = [hit for hit in self.hits if hit > now - self.window]

    def in_use(self, now: int) -> Fraction:
        return Fraction(len(self.hits))

    def add(self, cost: int, now: int) -> None:
        self.hits += [now] * min(cost, self.remaining(now))

    def give_back(self, cost: int) -> None:
        del self.hits[max(0, len(self.hits) - cost) :]

    def time_of(self, cost: int, now: int) -> int:
        excess = len(self.hits) + cost - self.quota
        return sorted(self.hits)[excess - 1] + self.window


KINDS: dict[str, type[Counter]] = {
    "token_bucket": Bucket,
    "fixed_window": Windows,
    "sliding_log": Log,
    "sliding_counter": Sliding,
}


class Model:
    """Several limits of one caller."""

    def __init__(self, limits: Iterable[Limit]) -> None:
        self.counters: dict[str, Counter] = {}
        self.edit(limits)

    def edit(self, limits: Iterable[Limit]) -> None:
        for limit in limits:
            if limit.name in self.counters:
                self.counters[limit.name].limit = limit
            else:
                self.counters[limit.name] = KINDS[limit.algorithm](limit)

    def do(self, operation: Operation, cost: int, now: int) -> Told:
        counters = list(self.counters.values())
        if operation is Operation.PEEK:
            counters = deepcopy(counters)
        for counter in counters:
            counter.settle(now)
        lacking = [c for c in counters if not c.fits(cost, now)]
        refusing = tuple(c.limit.name for c in lacking if not c.limit.is_shadow)
        asked = operation in (Operation.TAKE, Operation.PEEK)
        waits = tuple(c.wait(cost, now) for c in lacking if not c.limit.is_shadow)
        if operation is Operation.REFUND:
            for counter in counters:
                counter.give_back(cost)
        elif operation is Operation.CHARGE or (operation is Operation.TAKE and not refusing):
            for counter in counters:
                counter.add(cost, now)
        remaining = tuple(counter.remaining(now) for counter in counters)
        if not asked:
            return Told(True, (), (), remaining)
        return Told(not refusing, refusing, waits, remaining)


def window_of(now: int, window: int) -> int:
    """The beginning of the window that a time is in."""
    if window == 0:
        return as_time(as_date(now).replace(day=1, hour=0, minute=0, second=0, microsecond=0))
    if window % WEEK == 0:
        return now - (now - MONDAY) % window
    return now - now % window


def window_end(start: int, window: int) -> int:
    if window:
        return start + window
    # The 1st and 32 days is some day of the next month.
    return window_of(as_time(as_date(start) + timedelta(days=32)), 0)


def as_date(time: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=time)


def as_time(date: datetime) -> int:
    return (date - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
