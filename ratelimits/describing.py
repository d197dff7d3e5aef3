"""Rates in words."""

from __future__ import annotations

from functools import lru_cache

from django.apps import apps
from django.utils.translation import get_language

from .texts import gettext as _
from .texts import ngettext

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def describe(quota: int | None, window: int) -> str:
    """`100 requests per 5 minutes`, in the language of whoever reads it."""
    return _describe(quota, window, get_language() if apps.ready else None)


# Each refusal says it.
@lru_cache(maxsize=4096)
def _describe(quota: int | None, window: int, language: str | None) -> str:
    if quota is None:
        return _("unlimited")
    requests = ngettext("%(count)s request", "%(count)s requests", quota) % {"count": quota}
    return _("%(requests)s per %(period)s") % {"requests": requests, "period": _period(window)}


def _period(window: int) -> str:
    count, unit = split(window)
    if count == 1:
        return _one(unit)
    texts = {
        "s": ngettext("%(count)s second", "%(count)s seconds", count),
        "m": ngettext("%(count)s minute", "%(count)s minutes", count),
        "h": ngettext("%(count)s hour", "%(count)s hours", count),
        "d": ngettext("%(count)s day", "%(count)s days", count),
        "w": ngettext("%(count)s week", "%(count)s weeks", count),
    }
    return texts[unit] % {"count": count}


def _one(unit: str) -> str:
    """What "per" is said of."""
    return {
        "s": _("second"),
        "m": _("minute"),
        "h": _("hour"),
        "d": _("day"),
        "w": _("week"),
        "month": _("calendar month"),
    }[unit]


def split(window: int) -> tuple[int, str]:
    """The largest unit that divides a window, and how many of it."""
    if window == 0:
        return 1, "month"
    unit = next(u for u in ("w", "d", "h", "m", "s") if window % UNITS[u] == 0)
    return window // UNITS[unit], unit
