"""Who is being refused now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.formats import date_format

from ratelimits import usage
from ratelimits.admin.callers import Shown, callers
from ratelimits.admin.pages import PagesAdmin
from ratelimits.usage import Refusal
from ratelimits.words import count, local

MINUTES, SHOWN = 5, 20


@dataclass(frozen=True)
class Row:
    """`since` and `until` are the minutes of the first and the last of these refusals."""

    caller: Shown
    limit: str
    scope: str
    refused: str
    since: str
    until: str


@dataclass(frozen=True)
class Refusing:
    minutes: int
    rows: tuple[Row, ...]


def look(request: HttpRequest, admin: PagesAdmin[Any]) -> Refusing:
    """See Panel."""
    found = usage.refused_now(MINUTES, SHOWN)
    shown = callers((refusal.owner for refusal in found), admin.viewer(request))
    return Refusing(MINUTES, tuple(_row(refusal, shown[refusal.owner]) for refusal in found))


def _row(refusal: Refusal, caller: Shown) -> Row:
    since, until = (date_format(local(at), "H:i") for at in (refusal.since, refusal.until))
    return Row(caller, *refusal.line, count(refusal.counts.refused), since, until)
