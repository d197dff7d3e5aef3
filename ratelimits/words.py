"""Numbers and times as pages and commands say them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits.algorithms.base import ceil_div

MINUTE, HOUR, DAY = 60, 3600, 86400


def count(number: int) -> str:
    """With its digits grouped: `1,240`."""
    return number_format(number, force_grouping=True)


def lasting(time: timedelta) -> str:
    """How long it is, rounded up: `48 s`, `12 min`, `5 h`, `3 days`."""
    seconds = ceil_div(time // timedelta(microseconds=1), 1_000_000)
    if seconds < 2 * MINUTE:
        return _("%(number)s s") % {"number": seconds}
    if seconds < 2 * HOUR:
        return _("%(number)s min") % {"number": ceil_div(seconds, MINUTE)}
    if seconds < 2 * DAY:
        return _("%(number)s h") % {"number": ceil_div(seconds, HOUR)}
    days = ceil_div(seconds, DAY)
    return ngettext("%(number)s day", "%(number)s days", days) % {"number": days}


def moment(at: datetime) -> str:
    """A time as people say it: `the end of Friday, Dec. 4, 2026`, `Friday, Dec. 4, 2026, 3 p.m.`"""
    here = local(at)
    if (here.hour, here.minute, here.second) == (0, 0, 0):
        day = here - timedelta(days=1)
        named = f"{date_format(day, 'l')}, {date_format(day, 'DATE_FORMAT')}"
        return _("the end of %(day)s") % {"day": named}
    return f"{date_format(here, 'l')}, {date_format(here, 'DATETIME_FORMAT')}"


def local(at: datetime) -> datetime:
    """The same in the time zone of the page. Without USE_TZ it is so already."""
    return timezone.localtime(at) if timezone.is_aware(at) else at


def visible(text: str) -> str:
    """In one line that does nothing to a terminal, whoever made the text up."""
    return text if text.isprintable() else json.dumps(text)
