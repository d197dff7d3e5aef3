"""Switching the mode of all limits, as the command and the admin do it: see modes.py."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import connections
from django.utils.translation import gettext as _

from .conf import conf
from .edits import is_told
from .models import ModeSwitch, SwitchTo
from .modes import LONGEST
from .rates import Rate
from .rows import write_alias
from .stores import counts_alone, get_store


@dataclass(frozen=True)
class ModeNow:
    """The mode in force, as the database says. `row` is the switch that made it so, if any."""

    setting: str
    row: ModeSwitch | None

    @property
    def mode(self) -> str:
        return self.row.mode if self.row else self.setting


def mode_now() -> ModeNow:
    """May raise any of Django's database errors."""
    row = ModeSwitch.objects.using(write_alias()).first()
    return ModeNow(str(conf.MODE), row if row is not None and row.switch else None)


def switch(mode: str, seconds: int | None, by: str, reason: str) -> ModeSwitch:
    """Switch all limits. Without a time: to what the settings say, or to enforce for a day.

    Raises ValidationError if a weaker mode has no time, or one that is too long.
    """
    if seconds is None and mode == SwitchTo.ENFORCE:
        mode, seconds = (mode, LONGEST) if mode != conf.MODE else (SwitchTo.SETTINGS, 0)
    if seconds is None and mode != SwitchTo.SETTINGS:
        raise ValidationError(_("Say for how long: what refuses less has to end by itself."))
    rows = ModeSwitch.objects.db_manager(write_alias())
    return rows.switch(mode, seconds or 0, by=by, reason=reason)


def seconds_of(text: str) -> int:
    """`90s`, `30m`, `2h` or `1d` in seconds. Raises ValueError, which says how to write it."""
    try:
        seconds = Rate.parse(f"1/{text}").window
    except ValueError:
        seconds = 0
    if not 0 < seconds <= LONGEST:
        raise ValueError(_("“%s” is no time up to a day. Write for example 90s, 30m or 2h.") % text)
    return seconds


def spread() -> str:
    """Why other processes do not act on the last switch at once; empty if they do."""
    store = get_store()
    if store is None:
        return _("The cache is a dummy, so that nothing is counted anyway.")
    if counts_alone():
        reason = _("Each process counts in its own memory.")
    elif connections[write_alias()].in_atomic_block:
        # They are told when it is committed.
        return ""
    else:
        row = mode_now().row
        if is_told(row.switch if row else None):
            return ""
        reason = _("The store did not take the news.")
    later = _("Other processes act on it within %s seconds, when they read the plans again.")
    return f"{reason} {later % conf.CATALOG_TTL}"
