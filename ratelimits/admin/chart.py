"""Charts as SVG that needs no style of its own in the page, and so no exception in its policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ratelimits.usage import Point

WIDTH, HEIGHT, TOP, BOTTOM, LEFT, RIGHT = 720, 180, 12, 22, 52, 24
GAP = 0.2


@dataclass(frozen=True)
class Bar:
    """Of one minute or hour: where its allowed and refused parts are, and what it says."""

    x: str
    width: str
    allowed_y: str
    allowed: str
    refused_y: str
    refused: str
    told: str


@dataclass(frozen=True)
class Mark:
    """A text on an axis."""

    place: str
    text: str


@dataclass(frozen=True)
class Chart:
    """All of it in units of the view box, as texts: no language writes them otherwise."""

    bars: tuple[Bar, ...]
    shadow: str
    heights: tuple[Mark, ...]
    times: tuple[Mark, ...]
    view_box: str = f"0 0 {WIDTH} {HEIGHT}"
    left: int = LEFT
    right: int = WIDTH - RIGHT
    label: int = HEIGHT - 6
    edge: int = LEFT - 6


@dataclass(frozen=True)
class Scale:
    """Where things are: so many points beside each other, and `most` requests above each other."""

    count: int
    most: int

    @property
    def step(self) -> float:
        return (WIDTH - LEFT - RIGHT) / max(1, self.count)

    def x(self, place: float) -> float:
        return LEFT + self.step * place

    def height(self, requests: int) -> float:
        return (HEIGHT - TOP - BOTTOM) * requests / self.most

    def y(self, requests: int) -> float:
        return HEIGHT - BOTTOM - self.height(requests)


def chart_of(
    points: Sequence[Point],
    told: Callable[[Point], str],
    time: Callable[[Point], str],
    number: Callable[[int], str],
    every: int,
) -> Chart:
    """Stacked bars of what was allowed and refused, and a line of what limits in shadow would.

    A point in so many has its `time` below it.
    """
    most = nice(max((max(p.total.requests, p.total.shadow) for p in points), default=0))
    scale = Scale(len(points), most)
    marks = (0, most // 2, most) if most > 1 else (0, most)
    return Chart(
        tuple(_bar(scale, place, point, told(point)) for place, point in enumerate(points)),
        _line(scale, points),
        tuple(Mark(_text(scale.y(mark)), number(mark)) for mark in marks),
        tuple(
            Mark(_text(scale.x(place + 0.5)), time(point))
            for place, point in enumerate(points)
            if (len(points) - 1 - place) % every == 0
        ),
    )


def _bar(scale: Scale, place: int, point: Point, told: str) -> Bar:
    total = point.total
    return Bar(
        _text(scale.x(place + GAP / 2)),
        _text(scale.step * (1 - GAP)),
        _text(scale.y(total.allowed)),
        _text(scale.height(total.allowed)),
        _text(scale.y(total.requests)),
        _text(scale.height(total.refused)),
        told,
    )


def _line(scale: Scale, points: Sequence[Point]) -> str:
    """Empty if no limit in shadow would have refused anything."""
    if not any(point.total.shadow for point in points):
        return ""
    return " ".join(
        f"{_text(scale.x(place + 0.5))},{_text(scale.y(point.total.shadow))}"
        for place, point in enumerate(points)
    )


def nice(most: int) -> int:
    """The next round number, which is even above 1, so that its half is whole."""
    size = 1
    while size * 10 < most:
        size *= 10
    steps = (1, 2, 4, 6, 8, 10)
    return next(step * size for step in steps if step * size >= most)


def _text(number: float) -> str:
    return f"{number:.1f}"
