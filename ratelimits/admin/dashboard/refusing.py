"""Who is being refused now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from ratelimits import usage
from ratelimits.admin.callers import Shown, callers
from ratelimits.admin.pages import PagesAdmin
from ratelimits.admin.words import count, lasting, local
from ratelimits.usage import Refusal

MINUTES, SHOWN = 5, 20


@dataclass(frozen=True)
class Row:
    """`since` is the minute of the first of these refusals; the last one was within `ago`."""

    caller: Shown
    limit: str
    scope: str
    refused: str
    since: str
    ago: str


@dataclass(frozen=True)
class Refusing:
    minutes: int
    rows: tuple[Row, ...]


def look(request: HttpRequest, admin: PagesAdmin[Any]) -> Refusing:
    """See Panel."""
    found = usage.refused_now(MINUTES, SHOWN)
    shown = callers((refusal.owner for refusal in found), admin)
    return Refusing(MINUTES, tuple(_row(refusal, shown[refusal.owner]) for refusal in found))


def _row(refusal: Refusal, caller: Shown) -> Row:
    ago = max(timedelta(0), timezone.now() - refusal.until)
    since = local(refusal.since).strftime("%H:%M")
    return Row(caller, *refusal.line, count(refusal.counts.refused), since, lasting(ago))
