"""A chart of a replay: what was let through and what would have been refused, over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from xml.sax.saxutils import escape

from django.utils.translation import gettext

from ratelimits.words import lasting

from .counting import MINUTE
from .report import Report, when

WIDTH, HEIGHT = 960, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 56, 40
MOST_BARS = 120
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440, 2880, 10080)
# Read well on light and on dark grounds, and without telling red from green.
THROUGH, REFUSED, GROUND, TEXT = "#4c8bb5", "#d9480f", "#ffffff", "#333333"


def svg(report: Report) -> str:
    """The chart as an SVG file. The table of the report says the same in numbers."""
    width = _width(report)
    calls, refused = _counted(report, width)
    most = max(calls.values())
    title = gettext("Calls on the plan %s") % report.plan
    first, last = report.log.span
    about = gettext("From %(first)s to %(last)s UTC: %(calls)s calls, %(refused)s refused.") % {
        "first": when(first),
        "last": when(last),
        "calls": f"{report.log.count:,}",
        "refused": f"{report.refused:,}",
    }
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title about" font-family="sans-serif" font-size="12">',
        f'<title id="title">{escape(title)}</title><desc id="about">{escape(about)}</desc>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{GROUND}"/>',
        _text(LEFT, 20, title, size=16),
        *_legend(),
        _text(WIDTH - RIGHT, 41, gettext("a bar: %s") % _lasting(width), anchor="end"),
        *_axis(most),
        *_bars(calls, refused, width, most),
        _text(LEFT, HEIGHT - 12, when(first)[:-3]),
        _text(WIDTH - RIGHT, HEIGHT - 12, when(last)[:-3], anchor="end"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _width(report: Report) -> int:
    """How much time a bar stands for: whole minutes, so that bars are as many as can be seen."""
    first, last = report.log.span
    for step in STEPS:
        if last // (step * MINUTE) - first // (step * MINUTE) < MOST_BARS:
            return step * MINUTE
    return -(-(last - first + MINUTE) // (MOST_BARS - 1) // MINUTE) * MINUTE


def _lasting(width: int) -> str:
    return lasting(timedelta(microseconds=width))


def _counted(report: Report, width: int) -> tuple[Counter[int], Counter[int]]:
    calls: Counter[int] = Counter()
    refused: Counter[int] = Counter()
    for tried in report.tried:
        calls.update(at // width for at in tried.calls.times)
        for at, count in tried.refused.minutes.items():
            refused[at // width] += count
    return calls, refused


def _bars(calls: Counter[int], refused: Counter[int], width: int, most: int) -> Iterator[str]:
    start = min(calls)
    step = (WIDTH - LEFT - RIGHT) / (max(calls) - start + 1)
    for number in sorted(calls):
        x = LEFT + (number - start) * step
        told = gettext("%(at)s UTC: %(calls)s calls, %(refused)s refused") % {
            "at": when(number * width)[:-3],
            "calls": f"{calls[number]:,}",
            "refused": f"{refused[number]:,}",
        }
        low = _height(refused[number], most)
        high = _height(calls[number], most) - low
        bottom = HEIGHT - BOTTOM
        yield f"<g><title>{escape(told)}</title>"
        yield _bar(x, bottom - low, step, low, REFUSED)
        yield f"{_bar(x, bottom - low - high, step, high, THROUGH)}</g>"


def _height(count: int, most: int) -> float:
    return (HEIGHT - TOP - BOTTOM) * count / most


def _bar(x: float, y: float, width: float, height: float, fill: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(0.5, width - 1):.1f}" height="{height:.1f}"'
    return f'<rect {place} fill="{fill}"/>'


def _legend() -> Iterator[str]:
    entries = ((THROUGH, gettext("let through")), (REFUSED, gettext("refused")))
    for number, (fill, label) in enumerate(entries):
        x = LEFT + number * 140
        yield f'<rect x="{x}" y="32" width="10" height="10" fill="{fill}"/>'
        yield _text(x + 16, 41, label)


def _axis(most: int) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        y = HEIGHT - BOTTOM - _height(1, 1) * share
        yield (
            f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" '
            f'stroke="{TEXT}" stroke-opacity="0.2"/>'
        )
        yield _text(LEFT - 8, int(y) + 4, f"{most * share:,.0f}", anchor="end")


def _text(x: int, y: int, text: str, size: int = 12, anchor: str = "start") -> str:
    place = f'x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{TEXT}">{escape(text)}</text>'
