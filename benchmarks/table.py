"""Rows of the table, and the table itself."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from .timing import Spread, Times

WHOLE = "only in a whole run"


class LeftOut(Exception):
    """A part can't be measured here; the text says why."""


@dataclass(frozen=True)
class Goal:
    text: str
    reached: bool


@dataclass(frozen=True)
class Row:
    """One measurement: a value with its unit, and how many times `against` it is."""

    what: str
    measured: str = ""
    ratio: Spread | None = None
    against: str = ""
    goal: Goal | None = None
    note: str = ""

    @property
    def cells(self) -> list[str]:
        ratio, between = "", ""
        if self.ratio is not None:
            ratio = f"{number(self.ratio.median)} x"
            between = f"{number(self.ratio.low)}..{number(self.ratio.high)}"
            if self.ratio.low == self.ratio.high:
                between = ""
        goal = "" if self.goal is None else self.goal.text
        verdict = "" if self.goal is None else "yes" if self.goal.reached else "NO"
        return [self.what, self.measured, ratio, between, self.against, goal, verdict, self.note]


HEADINGS = ["what", "measured", "ratio", "quartiles", "against", "goal", "reached", "note"]
WORDS: dict[str, Callable[[float, float], bool]] = {
    "at most": operator.le,
    "under": operator.lt,
    "at least": operator.ge,
    "exactly": operator.eq,
}


def goal(words: str, most: float, value: float, unit: str = "x") -> Goal:
    """A goal such as `at most 0.8 x`, and whether the value reaches it."""
    text = " ".join(filter(None, [words, f"{most:,g}", unit]))
    return Goal(text, WORDS[words](value, most))


def timed(
    times: Times,
    name: str,
    base: str,
    aim: tuple[str, float] | None = None,
    *,
    less: str | None = None,
    what: str = "",
    note: str = "",
) -> Row:
    """A row of what was raced. With `less`, of what it takes more than that."""
    ratio = times.ratio(name, base, less)
    value = times.of(name).median - (times.of(less).median if less else 0)
    reached = goal(*aim, ratio.median) if aim else None
    return Row(what or name, microseconds(value), ratio, base, reached, note)


def exact(value: float) -> Spread:
    """A ratio of counts, which have no spread."""
    return Spread(value, value, value)


def microseconds(value: float) -> str:
    if abs(value) >= 10_000:
        return f"{value / 1000:,.1f} ms"
    return f"{value:.2f} us" if abs(value) < 10 else f"{value:,.0f} us"


def number(value: float) -> str:
    """With two or three digits that mean something."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def markdown(rows: Sequence[Row]) -> str:
    """The table, aligned so that it can be read as it is."""
    lines = [HEADINGS, *(row.cells for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEADINGS))]
    rule = ["-" * width for width in widths]
    return "\n".join(_line(line, widths) for line in [lines[0], rule, *lines[1:]])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return f"| {' | '.join(padded)} |"


def as_data(row: Row) -> dict[str, object]:
    return asdict(row)
