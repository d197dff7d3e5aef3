"""Makes plans of the settings of DRF's throttles, and tenants of a list of customers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, transaction
from django.utils.translation import gettext, ngettext

from ratelimits import rows
from ratelimits.extras import lacking
from ratelimits.management.databases import fault_of
from ratelimits.management.history import user_of
from ratelimits.plan_files import customers, from_drf
from ratelimits.plan_files.applying import apply
from ratelimits.plan_files.comparing import Change, change_of, compare
from ratelimits.plan_files.hints import hints_of
from ratelimits.plan_files.kinds import Item, stored
from ratelimits.plan_files.kinds import Path as Place
from ratelimits.plan_files.reading import BadFile
from ratelimits.plan_files.saving import save_customers
from ratelimits.scopes import scopes_of_views

FAULT = 2
FORMAT = 1
Found = tuple[Sequence[Change], Mapping[Place, Item], list[str]]


class Command(BaseCommand):
    help = (
        "Come from elsewhere: make plans of DRF's DEFAULT_THROTTLE_RATES, or tenants of a list of "
        "customers. Ends with 0, and with 2, having changed nothing, if what is to be imported or "
        "the database is not as it should be. What is there already is not made again."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "--drf",
            action="store_true",
            help="The rates in REST_FRAMEWORK: anon for the anonymous plan, user for the default "
            "one, other scopes for both.",
        )
        source.add_argument(
            "--csv",
            metavar="FILE",
            help="Customers, - is the standard input. The first line names the columns: key (as "
            "the setting TENANT gives it), name, plan (its slug), rate:NAME for a rate of their "
            "own of the limit NAME, and rate for that of the plan's only limit. Only key has to be "
            "there. An empty plan is the default one; an empty rate changes nothing.",
        )
        parser.add_argument("--dry-run", action="store_true", help="Only print what would change.")
        parser.add_argument("--json", action="store_true", help="Print it for programs.")
        parser.add_argument(
            "--user", metavar="NAME", help="Who changes it, for the history in the admin."
        )

    def handle(
        self, *, csv: str | None, dry_run: bool, json: bool, user: str | None, **options: Any
    ) -> None:
        alias = rows.write_alias()
        who = user_of(user, FAULT)
        try:
            with transaction.atomic(using=alias):
                changes, present, hints = _of_drf(alias) if csv is None else _of_csv(csv, alias)
                if not dry_run:
                    save = apply if csv is None else save_customers
                    save(changes, present, alias, who)
        except BadFile as error:
            source = "REST_FRAMEWORK" if csv is None else csv
            told = "\n".join(f"{source}: {fault}" for fault in error.faults)
            raise CommandError(told, returncode=FAULT) from error
        except OSError as error:
            raise CommandError(f"{csv}: {error}", returncode=FAULT) from error
        except Error as error:
            raise CommandError(fault_of(error), returncode=FAULT) from error
        if json:
            self.stdout.write(_dumped(changes, hints, dry_run))
        else:
            self._tell(changes, hints, dry_run)

    def _tell(self, changes: Sequence[Change], hints: Sequence[str], dry_run: bool) -> None:
        styles = {"add": self.style.SUCCESS, "change": self.style.WARNING}
        for change in changes:
            self.stdout.write(styles[change.action](str(change)))
        for hint in hints:
            self.stderr.write(self.style.WARNING(hint))
        if not changes:
            self.stdout.write(gettext("Nothing to change: all of it is there."))
        elif not dry_run:
            count = len(changes)
            told = ngettext("%d change made.", "%d changes made.", count) % count
            self.stdout.write(self.style.SUCCESS(told))


def _of_drf(alias: str) -> Found:
    try:
        import rest_framework  # noqa: F401
    except ModuleNotFoundError as error:
        raise BadFile([str(lacking(error, "drf"))]) from error
    present = stored(alias)
    wanted = from_drf.wanted_of(present)
    if not wanted.items:
        raise BadFile([gettext("DEFAULT_THROTTLE_RATES has no rate.")])
    told = gettext(
        "%s: no view has this as its throttle_scope. If it is the scope of a throttle class for "
        "all requests, empty the scope of the limit."
    )
    hints = [told % scope for scope in from_drf.unnamed(wanted, scopes_of_views())]
    return compare(wanted, present, alias, prune=False).changes, present, hints


def _of_csv(file: str, alias: str) -> Found:
    # What a terminal or a locale takes texts for is nothing to the list.
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    found = customers.read_customers(customers.decoded(data), alias)
    made = (change_of(item, found.present.get(path)) for path, item in found.items.items())
    changes = [change for change in made if change is not None]
    return changes, found.present, list(hints_of(found, alias))


def _dumped(changes: Sequence[Change], hints: Sequence[str], dry_run: bool) -> str:
    value = {
        "format": FORMAT,
        "dry_run": dry_run,
        "changes": [
            {
                "action": change.action,
                "path": list(change.path),
                "fields": {name: [_plain(old), _plain(new)] for name, old, new in change.fields},
            }
            for change in changes
        ],
        "hints": list(hints),
    }
    return json.dumps(value, indent=2)


def _plain(value: Any) -> Any:
    """A value as JSON has it; plans by their slugs."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(getattr(value, "slug", value))
