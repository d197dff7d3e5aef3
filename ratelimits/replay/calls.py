"""What was called by whom and when, kept small and in the order of time."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .formats import Fields, Reader, unescaped
from .paths import Kind, Paths

# Of the lines that could not be read so many are named.
EXAMPLES = 5
MOST_DIGITS = 100
# How servers write that there is nothing.
NOTHING = ("", "-")

Clock = Callable[[Any], "int | None"]


@dataclass
class Calls:
    """The calls of one tenant: when, and the number of their kind."""

    times: array[int] = field(default_factory=lambda: array("q"))
    kinds: array[int] = field(default_factory=lambda: array("I"))
    latest: int = 0
    in_order: bool = True

    def __len__(self) -> int:
        return len(self.times)

    def sort(self) -> None:
        """By time. Servers write a call when it has ended, and several logs overlap."""
        if not self.in_order:
            order = sorted(range(len(self.times)), key=self.times.__getitem__)
            self.times = array("q", [self.times[place] for place in order])
            self.kinds = array("I", [self.kinds[place] for place in order])
            self.in_order = True


@dataclass
class Log:
    """All calls by tenant, and how many lines are none of them."""

    tenants: dict[str, Calls] = field(default_factory=dict)
    # By their numbers.
    kinds: list[Kind] = field(default_factory=list)
    unreadable: int = 0
    # Where the first of those stand.
    examples: list[str] = field(default_factory=list)
    # Calls without a tenant, and of paths that do not count.
    nobodys: int = 0
    elsewhere: int = 0

    @property
    def count(self) -> int:
        return sum(map(len, self.tenants.values()))

    @property
    def span(self) -> tuple[int, int]:
        """The times of the first and the last call, of which there must be one."""
        calls = self.tenants.values()
        return min(each.times[0] for each in calls), max(each.times[-1] for each in calls)

    def sort(self) -> None:
        for calls in self.tenants.values():
            calls.sort()


class Reading:
    """Reads lines into a log."""

    def __init__(self, read: Reader, clock: Clock, paths: Paths, by_cost: bool = False) -> None:
        self.log = Log()
        self._read, self._clock, self._paths = read, clock, paths
        self._by_cost = by_cost
        self._numbers: dict[Kind, int] = {}
        # By how they stand in the log, where one may be written in several ways; None: nobody.
        self._tenants: dict[Any, Calls | None] = {}

    def add(self, name: str, lines: Iterable[str]) -> None:
        """All lines of one file."""
        read, clock, tenants = self._read, self._clock, self._tenants
        all_alike = not self._paths.matter and not self._by_cost
        alike = self._number(self._paths.everything)
        for place, line in enumerate(lines, 1):
            fields = read(line)
            at = None if fields is None else clock(fields.time)
            if fields is None or at is None:
                self._unread(name, place, line)
                continue
            kind = alike if all_alike else self._kind(fields)
            if kind is None:
                self._unread(name, place, line)
                continue
            if kind < 0:
                self.log.elsewhere += 1
                continue
            try:
                calls = tenants[fields.tenant]
            except KeyError:
                calls = self._calls(fields.tenant)
            if calls is None:
                self.log.nobodys += 1
                continue
            if at < calls.latest:
                calls.in_order = False
            else:
                calls.latest = at
            calls.times.append(at)
            calls.kinds.append(kind)

    def _unread(self, name: str, place: int, line: str) -> None:
        # An empty line says nothing, also not that something is wrong.
        if line and not line.isspace():
            self.log.unreadable += 1
            if len(self.log.examples) < EXAMPLES:
                self.log.examples.append(f"{name}:{place}")

    def _kind(self, fields: Fields) -> int | None:
        """The number of a call's kind; below 0 if it does not count, None if nobody can tell."""
        kind = self._paths.everything
        if self._paths.matter:
            if fields.path is None:
                return None
            found = self._paths.kind(str(fields.path))
            if found is None:
                return -1
            kind = found
        is_set = kind.scope in self._paths.costs
        if self._by_cost and not is_set and fields.cost not in (None, *NOTHING):
            cost = str(fields.cost)
            # What has more digits than Python reads is no number of units.
            if not cost.isdecimal() or len(cost) > MOST_DIGITS:
                return None
            kind = kind._replace(cost=int(cost))
        return self._number(kind)

    def _number(self, kind: Kind) -> int:
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self._numbers)
            self.log.kinds.append(kind)
        return number

    def _calls(self, written: Any) -> Calls | None:
        """The calls of a tenant, as it is written at its first call."""
        tenant = "" if written is None else unescaped(str(written)).strip()
        calls = None
        if tenant not in NOTHING:
            calls = self.log.tenants.setdefault(tenant, Calls())
        self._tenants[written] = calls
        return calls
