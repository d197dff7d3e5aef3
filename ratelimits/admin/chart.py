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
    step = (WIDTH - LEFT - RIGHT) / max(1, len(points))
    room = HEIGHT - TOP - BOTTOM

    def height(count: int) -> float:
        return room * count / most

    bars, line = [], []
    for place, point in enumerate(points):
        x, base = LEFT + step * place, HEIGHT - BOTTOM
        allowed, refused = height(point.total.allowed), height(point.total.refused)
        bars.append(
            Bar(
                _text(x + step * GAP / 2),
                _text(step * (1 - GAP)),
                _text(base - allowed),
                _text(allowed),
                _text(base - allowed - refused),
                _text(refused),
                told(point),
            )
        )
        if any(p.total.shadow for p in points):
            line.append(f"{_text(x + step / 2)},{_text(base - height(point.total.shadow))}")
    marks = (0, most // 2, most) if most > 1 else (0, most)
    return Chart(
        tuple(bars),
        " ".join(line),
        tuple(Mark(_text(HEIGHT - BOTTOM - height(mark)), number(mark)) for mark in marks),
        tuple(
            Mark(_text(LEFT + step * (place + 0.5)), time(point))
            for place, point in enumerate(points)
            if (len(points) - 1 - place) % every == 0
        ),
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
