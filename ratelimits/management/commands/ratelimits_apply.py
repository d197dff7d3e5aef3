"""Makes plans what a file says, as ratelimits_export writes it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, transaction
from django.utils.translation import gettext, ngettext

from ratelimits import rows
from ratelimits.conf import conf
from ratelimits.management.databases import fault_of
from ratelimits.management.history import user_of
from ratelimits.plan_files.applying import apply
from ratelimits.plan_files.comparing import Difference, compare
from ratelimits.plan_files.kinds import stored
from ratelimits.plan_files.reading import BadFile, Wanted, read

DIFFERENCES, FAULT = 1, 2


class Command(BaseCommand):
    help = (
        "Make the plans, their limits, service limits and costs of scopes what a file says. A "
        "section that the file does not have is left alone. Ends with 0, with 1 if --diff finds "
        "differences, and with 2, having changed nothing, if the file or the database is not as "
        "it should be."
    )
    # Their faults would end it as if there were differences.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="A file of TOML; - is the standard input.")
        parser.add_argument(
            "--diff", action="store_true", help="Only print what would change; ends with 1 if so."
        )
        parser.add_argument(
            "--prune", action="store_true", help="Also remove what the file's sections lack."
        )
        parser.add_argument(
            "--user", metavar="NAME", help="Who changes it, for the history in the admin."
        )

    def handle(self, *, file: str, diff: bool, prune: bool, user: str, **options: Any) -> None:
        alias = rows.write_alias()
        wanted = _read(file)
        try:
            with transaction.atomic(using=alias):
                present = stored(alias)
                difference = compare(wanted, present, alias, prune)
                if not diff:
                    apply(difference.changes, present, alias, user_of(user, FAULT))
        except BadFile as error:
            raise _fault(file, error) from error
        except Error as error:
            raise CommandError(fault_of(error), returncode=FAULT) from error
        self._tell(difference, diff)
        if conf.PLAN and any(change.action == "remove" for change in difference.changes):
            told = gettext("The setting PLAN may put tenants on plans that no row is on.")
            self.stderr.write(self.style.WARNING(told))
        if not diff:
            self._warn_without_default(alias)
        elif difference.changes:
            count = len(difference.changes)
            told = ngettext("%d difference", "%d differences", count) % count
            raise CommandError(told, returncode=DIFFERENCES)

    def _tell(self, difference: Difference, is_diff: bool) -> None:
        styles = {
            "add": self.style.SUCCESS,
            "change": self.style.WARNING,
            "remove": self.style.ERROR,
        }
        for change in difference.changes:
            self.stdout.write(styles[change.action](str(change)))
        for item in difference.kept:
            told = gettext("%s: not in the file, stays. --prune removes it.") % item
            self.stdout.write(f"= {told}")
        if not difference.changes:
            self.stdout.write(gettext("Everything is as the file says."))
        elif not is_diff:
            count = len(difference.changes)
            told = ngettext("%d change made.", "%d changes made.", count) % count
            self.stdout.write(self.style.SUCCESS(told))

    def _warn_without_default(self, alias: str) -> None:
        if not rows.model("Plan").objects.using(alias).filter(is_default=True).exists():
            told = gettext("No plan is the default: tenants without one are not limited.")
            self.stderr.write(self.style.WARNING(told))


def _read(file: str) -> Wanted:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
        return read(text)
    except BadFile as error:
        raise _fault(file, error) from error
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: {error}", returncode=FAULT) from error


def _fault(file: str, error: BadFile) -> CommandError:
    return CommandError("\n".join(f"{file}: {fault}" for fault in error.faults), returncode=FAULT)
