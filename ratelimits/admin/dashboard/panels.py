"""What a panel is. To add one: a module and a template like the others, and a line in page.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from ratelimits.admin.pages import PagesAdmin
from ratelimits.exceptions import RateLimitError


@dataclass(frozen=True)
class Panel:
    """A part of the dashboard.

    `look` gives what the template calls `panel`, None for a user who must not see it; it may raise
    StoreUnavailable or StoreError, and then `panel` is missing and `away` is true.
    """

    template: str
    look: Callable[[HttpRequest, PagesAdmin[Any]], Any]


@dataclass(frozen=True)
class Shown:
    """A panel as it is shown."""

    template: str
    panel: Any
    away: bool = False


def shown(panels: tuple[Panel, ...], request: HttpRequest, admin: PagesAdmin[Any]) -> list[Shown]:
    """Those that the user may see."""
    found = [_shown(panel, request, admin) for panel in panels]
    return [one for one in found if one is not None]


def _shown(panel: Panel, request: HttpRequest, admin: PagesAdmin[Any]) -> Shown | None:
    try:
        looked = panel.look(request, admin)
    except RateLimitError:
        return Shown(panel.template, None, away=True)
    return None if looked is None else Shown(panel.template, looked)
