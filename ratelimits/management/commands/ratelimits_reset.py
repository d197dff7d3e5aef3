"""Forgets what tenants have used, so that their next requests pass."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from ratelimits import limiter, rows
from ratelimits.exceptions import RateLimitError, StoreUnavailable
from ratelimits.management.databases import fault_of
from ratelimits.management.history import enter, user_of
from ratelimits.standing import standing_of
from ratelimits.stores import counts_alone
from ratelimits.words import count, visible

FAULT = 2
# Of the JSON, for whoever reads it: a new number only if what was there changes its meaning.
FORMAT = 1
RESET = gettext_noop("Reset what it had used.")


class Forgotten(NamedTuple):
    """A tenant, and the units that its limits had in use; those of which none were are left out."""

    tenant: str
    used: dict[str, int]


class Command(BaseCommand):
    help = (
        "Forget what tenants have used: their buckets are full again, in all scopes. Limits of "
        "the service stay as they are. Ends with 0, or with 2 if somebody could not be reset."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenants", nargs="*", metavar="KEY", help="The keys of tenants.")
        parser.add_argument("--plan", metavar="SLUG", help="All tenants whose row has this plan.")
        parser.add_argument(
            "--dry-run", action="store_true", help="Only show what would be forgotten."
        )
        parser.add_argument("--json", action="store_true", help="Print it for programs.")
        parser.add_argument(
            "--user", metavar="NAME", help="Who you are to Django, for the admin's history."
        )

    def handle(
        self, *, tenants: list[str], plan: str | None, dry_run: bool, json: bool, **options: Any
    ) -> None:
        done: list[Forgotten] = []
        fault = ""
        try:
            user = user_of(options["user"], FAULT)
            if "" in tenants or not (tenants or plan):
                raise CommandError(_("Name the tenants to reset."), returncode=FAULT)
            of_plan = _of_plan(plan)
            if plan and not of_plan:
                self.stderr.write(_("No tenant's row has the plan “%s”.") % plan)
            for forgotten in _forget([*tenants, *of_plan], dry_run, user):
                done.append(forgotten)
                if not json:
                    self._tell(forgotten, dry_run)
        except (RateLimitError, Error) as error:
            fault = _("%(done)s; then it failed: %(error)s") % {
                "done": _number(len(done)),
                "error": fault_of(error) if isinstance(error, Error) else error,
            }
        if json:
            self.stdout.write(_dumped(done, dry_run, fault))
        if fault:
            raise CommandError(fault, returncode=FAULT)
        if counts_alone():
            told = _("Each process counts in its own memory: this was the command's own.")
            self.stderr.write(self.style.WARNING(told))

    def _tell(self, forgotten: Forgotten, dry_run: bool) -> None:
        used = ", ".join(f"{name} {count(units)}" for name, units in forgotten.used.items())
        if not used:
            told = _("%(tenant)s: had used nothing")
        elif dry_run:
            told = _("%(tenant)s: would forget %(used)s")
        else:
            told = _("%(tenant)s: forgot %(used)s")
        self.stdout.write(told % {"tenant": visible(forgotten.tenant), "used": used})


def _of_plan(slug: str | None) -> list[str]:
    if not slug:
        return []
    alias = rows.write_alias()
    if not rows.model("Plan").objects.using(alias).filter(slug=slug).exists():
        raise CommandError(_("There is no plan “%s”.") % slug, returncode=FAULT)
    tenants = rows.model("Tenant").objects.using(alias).filter(plan__slug=slug)
    return list(tenants.order_by("key").values_list("key", flat=True))


def _forget(keys: Iterable[str], dry_run: bool, user: Any) -> Iterator[Forgotten]:
    """Each tenant once, as soon as it is done. Raises StoreUnavailable if it can't be."""
    for key in dict.fromkeys(keys):
        standing = standing_of(key)
        if not standing.counted:
            raise StoreUnavailable(_("nothing is counted, since the mode of all limits is “off”."))
        if not standing.known:
            raise StoreUnavailable(_("the store can't be reached."))
        own = (found for found in standing.limits if found.origin.kind != "service")
        used = {f.limit.name: f.level.used for f in own if f.level and f.level.used}
        if not dry_run:
            limiter.reset(key)
            _enter_in_history(key, user)
        yield Forgotten(key, used)


def _enter_in_history(key: str, user: Any) -> None:
    if user is not None:
        model = rows.model("Tenant")
        tenant = model.objects.using(rows.write_alias()).filter(key=key).first()
        enter(user, tenant or model(key=key), "CHANGE", _(RESET))


def _number(tenants: int) -> str:
    return ngettext("%s tenant was reset", "%s tenants were reset", tenants) % count(tenants)


def _dumped(done: Iterable[Forgotten], dry_run: bool, fault: str) -> str:
    value = {
        "format": FORMAT,
        "dry_run": dry_run,
        "tenants": [{"tenant": each.tenant, "used": each.used} for each in done],
        "fault": fault,
    }
    return json.dumps(value, indent=2)
