"""What readers of usage are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from ratelimits.limits import Owner


class Counts(NamedTuple):
    """Requests and units of some time.

    `allowed` passed and `refused` did not; of a limit, it was this one that refused. `shadow`
    are counted besides: limits in shadow would have refused them. `at_least`: there may have been
    more, since the least used callers of that time are not kept apart.
    """

    allowed: int = 0
    refused: int = 0
    shadow: int = 0
    allowed_units: int = 0
    refused_units: int = 0
    shadow_units: int = 0
    at_least: bool = False

    @property
    def requests(self) -> int:
        return self.allowed + self.refused

    @property
    def units(self) -> int:
        return self.allowed_units + self.refused_units

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(
            self.allowed + other.allowed,
            self.refused + other.refused,
            self.shadow + other.shadow,
            self.allowed_units + other.allowed_units,
            self.refused_units + other.refused_units,
            self.shadow_units + other.shadow_units,
            self.at_least or other.at_least,
        )


NONE = Counts()


class Line(NamedTuple):
    """A limit, and the scope that was asked for ("" for none)."""

    limit: str
    scope: str


@dataclass(frozen=True)
class Point:
    """A minute or an hour of somebody's, or of everybody's."""

    start: datetime
    seconds: int
    total: Counts = NONE
    lines: Mapping[Line, Counts] = field(default_factory=dict)


@dataclass(frozen=True)
class History:
    """Minutes and hours, the oldest first and the current one last; those without usage too."""

    minutes: tuple[Point, ...]
    hours: tuple[Point, ...]


class Peak(NamedTuple):
    """The most units that a limit let pass in any minute, and in any hour."""

    minute: int = 0
    hour: int = 0


class Used(NamedTuple):
    """What one caller did."""

    owner: Owner
    counts: Counts


@dataclass(frozen=True)
class Top:
    """Who did most since a moment. `cut`: those who did least are not known one by one."""

    since: datetime
    callers: tuple[Used, ...]
    cut: bool


class Refusal(NamedTuple):
    """A caller whom a limit refuses: how often lately, since which minute, until which one."""

    owner: Owner
    line: Line
    counts: Counts
    since: datetime
    until: datetime
