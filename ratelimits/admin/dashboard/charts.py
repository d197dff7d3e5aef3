"""How many requests there were, and what became of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from ratelimits import usage
from ratelimits.admin.chart import Chart, chart_of
from ratelimits.admin.pages import PagesAdmin
from ratelimits.usage import Counts, Point
from ratelimits.words import count, local

MINUTES, HOURS = 60, 72


@dataclass(frozen=True)
class Row:
    time: str
    allowed: str
    refused: str
    shadow: str


@dataclass(frozen=True)
class Drawn:
    """A chart, the same as a sentence and as a table."""

    ident: str
    title: str
    sentence: str
    chart: Chart
    rows: tuple[Row, ...]


def look(request: HttpRequest, admin: PagesAdmin[Any]) -> tuple[Drawn, ...]:
    """See Panel."""
    found = usage.totals(hours=HOURS, minutes=MINUTES)
    return (
        drawn("minutes", _("The last hour, by minute"), found.minutes, _minute, every=10),
        drawn("hours", _("The last three days, by hour"), found.hours, _hour, every=12),
    )


def drawn(
    ident: str, title: str, points: Sequence[Point], time: Callable[[Point], str], every: int
) -> Drawn:
    """What is shown of some points, with the latest first in the table."""
    total = Counts()
    for point in points:
        total = total.plus(point.total)

    def told(point: Point) -> str:
        return _("%(time)s: %(sentence)s") % {"time": time(point), "sentence": _said(point.total)}

    chart = chart_of(points, told, time, count, every)
    rows = (Row(time(point), *_numbers(point.total)) for point in reversed(points))
    return Drawn(ident, title, _said(total), chart, tuple(rows))


def _said(counts: Counts) -> str:
    allowed, refused, shadow = _numbers(counts)
    told = {"allowed": allowed, "refused": refused, "shadow": shadow}
    if counts.shadow:
        return _("%(allowed)s allowed, %(refused)s refused, %(shadow)s would be refused") % told
    return _("%(allowed)s allowed, %(refused)s refused") % told


def _numbers(counts: Counts) -> tuple[str, str, str]:
    return count(counts.allowed), count(counts.refused), count(counts.shadow)


def _minute(point: Point) -> str:
    return date_format(local(point.start), "H:i")


def _hour(point: Point) -> str:
    return date_format(local(point.start), "D H:i")
