"""Switches the mode of all limits for a while, and tells which one is in force."""

from __future__ import annotations

import getpass
from json import dumps
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error
from django.utils.translation import gettext as _

from ratelimits.management.databases import fault_of
from ratelimits.management.history import enter, user_of
from ratelimits.models import SwitchTo
from ratelimits.switching import ModeNow, mode_now, seconds_of, spread, switch

# As the doctor's: a warning, and a problem.
WEAKER, FAILED = 1, 2


class Command(BaseCommand):
    help = (
        "Switch the mode of all limits for a while, in all processes at once; or tell which mode "
        "is in force. Ends with 0, with 2 if it can't be done, and with --strict with 1 while the "
        "limits do not refuse."
    )
    # On call nobody wants to hear of anything else.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "mode",
            nargs="?",
            choices=SwitchTo.values,
            help="What to switch to; settings ends a switch. Without it: tell the mode in force.",
        )
        parser.add_argument(
            "--for",
            dest="time",
            metavar="TIME",
            help="How long, such as 90s, 30m or 2h; a day at most. Needed for shadow and off.",
        )
        parser.add_argument("--reason", default="", help="For those who come after you.")
        parser.add_argument(
            "--user", metavar="NAME", help="Who you are to Django, for the admin's history."
        )
        parser.add_argument("--json", action="store_true", help="Print it for programs.")
        parser.add_argument(
            "--strict", action="store_true", help="End with 1 while the limits do not refuse."
        )

    def handle(self, *, mode: str | None, json: bool, strict: bool, **options: Any) -> None:
        try:
            if mode is not None:
                self._switch(mode, **options)
            now, late = mode_now(), spread() if mode else ""
        except Error as error:
            raise CommandError(fault_of(error), returncode=FAILED) from error
        self.stdout.write(_dumped(now) if json else _told(now))
        if late:
            self.stderr.write(self.style.WARNING(late))
        if strict and now.mode != SwitchTo.ENFORCE:
            raise CommandError(_("The limits do not refuse."), returncode=WEAKER)

    def _switch(
        self, mode: str, *, time: str | None, reason: str, user: str | None, **options: Any
    ) -> None:
        who = user_of(user, FAILED)
        try:
            seconds = None if time is None else seconds_of(time)
            row = switch(mode, seconds, user or _system_user(), reason)
        except (ValidationError, ValueError) as error:
            texts = error.messages if isinstance(error, ValidationError) else [str(error)]
            raise CommandError(" ".join(texts), returncode=FAILED) from error
        if who is not None:
            enter(who, row, "ADDITION", dumps([{"added": {}}]))


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container's user without a name.
        return ""


def _told(now: ModeNow) -> str:
    setting = _("The setting MODE is “%s”.") % now.setting
    if now.row is None:
        return _("The mode of all limits is “%s”.") % now.mode + f" {setting}"
    return f"{now.row} {setting}"


def _dumped(now: ModeNow) -> str:
    row = now.row
    value = {
        "mode": now.mode,
        "setting": now.setting,
        "until": row.until.isoformat() if row else None,
        "by": row.by if row else "",
        "reason": row.reason if row else "",
    }
    return dumps(value, indent=2)
