"""Where a tenant stands: its limits, where each comes from, and how full it is."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from ratelimits.exceptions import CatalogUnavailable
from ratelimits.management.tables import table
from ratelimits.models import Mode
from ratelimits.standing import InForce, Origin, Standing, standing_of
from ratelimits.stores import counts_alone
from ratelimits.tenants import is_possible
from ratelimits.words import count, lasting, moment

REFUSED, FAULT = 1, 2
# Of the JSON, for whoever reads it: a new number only if what was there changes its meaning.
FORMAT = 1


class Command(BaseCommand):
    help = (
        "Show the limits of a tenant, where each comes from and how full it is; nothing is taken. "
        "Ends with 0, with --strict with 1 if a limit refuses the next request, and with 2 if "
        "the limits or the store can't be reached."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", help="The tenant's key, such as user:7.")
        parser.add_argument("--json", action="store_true", help="Print it for programs.")
        parser.add_argument(
            "--strict", action="store_true", help="End with 1 if a limit refuses the next request."
        )

    def handle(self, *, tenant: str, json: bool, strict: bool, **options: Any) -> None:
        if not tenant:
            raise CommandError(_("A tenant's key can't be empty."), returncode=FAULT)
        try:
            standing = standing_of(tenant)
        except CatalogUnavailable as error:
            told = _("The limits can't be read: %s") % error
            raise CommandError(told, returncode=FAULT) from error
        if json:
            self.stdout.write(_dumped(tenant, standing))
        else:
            self._show(tenant, standing)
        if counts_alone():
            told = _("Each process counts in its own memory: how full others are is not seen here.")
            self.stderr.write(self.style.WARNING(told))
        if standing.counted and not standing.known:
            told = _("The store can't be reached: how full the limits are is not known.")
            raise CommandError(told, returncode=FAULT)
        if strict and standing.refusing:
            raise CommandError(_("The next request is refused."), returncode=REFUSED)

    def _show(self, tenant: str, standing: Standing) -> None:
        self.stdout.write(f"{tenant}: {_plan(standing)}")
        if not is_possible(tenant):
            told = _("No resolver of this project makes a key like this.")
            self.stdout.write(self.style.WARNING(told))
        if standing.mode != "enforce":
            told = _("Nothing is refused: the mode of all limits is “%s”.") % standing.mode
            self.stdout.write(self.style.WARNING(told))
        if standing.limits:
            self.stdout.write("\n".join(table([_heads(), *map(_row, standing.limits)])))
        else:
            self.stdout.write(_("No limit applies."))
        for found in standing.refusing:
            self.stdout.write(self.style.ERROR(_refusal(found)))


def _plan(standing: Standing) -> str:
    if standing.plan is None:
        return _("no plan")
    if standing.plan_is == "plan":
        return _("plan %s") % standing.plan
    return _("plan %s, the default") % standing.plan


def _heads() -> tuple[str, ...]:
    return (
        _("limit"),
        _("rate"),
        _("burst"),
        _("scope"),
        _("mode"),
        _("from"),
        _("left"),
        _("full in"),
    )


def _row(found: InForce) -> tuple[str, ...]:
    limit, level = found.limit, found.level
    left = full = "-"
    if level is not None:
        left = _("%(left)s of %(all)s") % {"left": count(level.left), "all": count(level.capacity)}
        full = "-" if level.full is None else lasting(level.full)
    burst = "-" if limit.burst is None else count(limit.burst)
    scope, mode = limit.scope or _("all"), str(Mode(limit.mode).label)
    return limit.name, str(limit.rate), burst, scope, mode, _origin(found), left, full


def _origin(found: InForce) -> str:
    origin = found.origin
    if origin.kind == "service":
        return _("service") if found.limit.per == "everyone" else _("service, each address")
    if origin.kind != "own":
        return _("plan %s") % origin.plan
    replaced = origin.replaces
    parts = [_("own, replaces %s") % replaced.rate if replaced else _("own")]
    if origin.expires is not None:
        parts.append(_("until %s") % moment(origin.expires))
    return ", ".join(parts)


def _refusal(found: InForce) -> str:
    told = {"name": found.limit.name, "wait": lasting(found.wait) if found.wait else ""}
    if found.wait is None:
        return _("Refused for good by “%(name)s”.") % told
    return _("Refused now by “%(name)s”; the next request passes in %(wait)s.") % told


def _dumped(tenant: str, standing: Standing) -> str:
    value = {
        "format": FORMAT,
        "tenant": tenant,
        "plan": standing.plan,
        "plan_is": standing.plan_is,
        "mode": standing.mode,
        "counted": standing.counted,
        "store": standing.known,
        "refused": bool(standing.refusing),
        "limits": [_limit(found) for found in standing.limits],
    }
    return json.dumps(value, indent=2)


def _limit(found: InForce) -> dict[str, Any]:
    limit, level = found.limit, found.level
    return {
        "name": limit.name,
        "rate": str(limit.rate),
        "burst": limit.burst,
        "scope": limit.scope,
        "algorithm": limit.algorithm,
        "mode": limit.mode,
        "per": limit.per,
        **_origin_json(found.origin),
        "capacity": None if level is None else level.capacity,
        "used": None if level is None else level.used,
        "left": None if level is None else level.left,
        "full_in": None if level is None else _seconds(level.full),
        "refuses": found.refuses,
        "passes_in": _seconds(found.wait),
    }


def _origin_json(origin: Origin) -> dict[str, Any]:
    return {
        "from": origin.kind,
        "replaces": str(origin.replaces.rate) if origin.replaces else None,
        "expires_at": origin.expires.isoformat() if origin.expires else None,
    }


def _seconds(time: timedelta | None) -> float | None:
    return None if time is None else time.total_seconds()
