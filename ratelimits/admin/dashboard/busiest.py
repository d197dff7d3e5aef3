"""Who uses most."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from ratelimits import usage
from ratelimits.admin.callers import Shown, callers
from ratelimits.admin.pages import PagesAdmin
from ratelimits.words import count, local

SHOWN = 20


@dataclass(frozen=True)
class Row:
    caller: Shown
    requests: str
    units: str
    refused: str
    shadow: str


@dataclass(frozen=True)
class Busiest:
    since: datetime
    rows: tuple[Row, ...]
    cut: bool


def look(request: HttpRequest, admin: PagesAdmin[Any]) -> Busiest:
    """See Panel."""
    top = usage.top(SHOWN)
    shown = callers((used.owner for used in top.callers), admin.viewer(request))
    rows = (
        Row(
            shown[used.owner],
            count(used.counts.requests),
            count(used.counts.allowed_units),
            count(used.counts.refused),
            count(used.counts.shadow),
        )
        for used in top.callers
    )
    return Busiest(local(top.since), tuple(rows), top.cut)
