"""Where a caller stands, in the words of the pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ratelimits.catalog import Caller
from ratelimits.exceptions import CatalogUnavailable, PlanUnknown
from ratelimits.limits import Limit
from ratelimits.models import Plan, TenantLimit
from ratelimits.overrides import named
from ratelimits.standing import InForce, Level, Origin, Standing, standing_of
from ratelimits.words import count, lasting, moment

from .tenant_usage import Lately, lately
from .verdicts import verdict
from .viewers import Viewer

# Below so much of the whole, in percent, a meter warns.
LOW = 20


@dataclass(frozen=True)
class Meter:
    """A level as a `<meter>` shows it."""

    left: int
    capacity: int
    low: int
    text: str


@dataclass(frozen=True)
class Row:
    """One limit in force."""

    name: str
    rate: str
    scope: str
    mode: str
    source: SafeString | str
    notes: tuple[str, ...]
    meter: Meter | None
    level: str
    full: str
    refuses: bool
    refused: str


@dataclass(frozen=True)
class Panel:
    """What a page shows of a caller's standing, and of its last hour."""

    standing: Standing | None
    verdict: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def refuses(self) -> bool:
        return any(row.refuses for row in self.rows)


def panel_of(who: str | Caller, viewer: Viewer, own: Iterable[TenantLimit] = ()) -> Panel:
    """The panel of a caller. `own` are its rows, which know the reasons."""
    caller = Caller(who) if isinstance(who, str) else who
    try:
        standing = standing_of(caller)
    except CatalogUnavailable as error:
        return Panel(None, (_unavailable(error),), ())
    # What was raised for a while, and is over, is what it was before, for the reason it had then.
    in_force = ((row.afterwards() if row.is_over else None) or row for row in own)
    rows_by_name = {row.name: row for row in in_force}
    plan, hour = _plan_link(standing, viewer), lately(caller)
    rows = (_row(found, plan, rows_by_name, hour) for found in standing.limits)
    return Panel(standing, tuple(verdict(standing, hour)), tuple(rows))


def _unavailable(error: CatalogUnavailable) -> str:
    if isinstance(error.__cause__, PlanUnknown):
        return _("The limits are unavailable: what the setting PLAN names fails.")
    return _("The limits are unavailable: the database can't be read.")


def _row(
    found: InForce, plan: SafeString | str, own: Mapping[str, TenantLimit], hour: Lately | None
) -> Row:
    limit, origin = found.limit, found.origin
    row = own.get(limit.name) if origin.kind == "own" else None
    return Row(
        name=limit.name,
        rate=described(limit),
        scope=limit.scope,
        mode=_mode(limit),
        source=_source(limit, origin, plan),
        notes=tuple(_notes(origin, row)),
        meter=_meter(found.level) if found.level else None,
        level=_level(found),
        full=_full(found.level),
        refuses=found.refuses,
        refused=hour.refused_by(limit.name, limit.is_shadow) if hour else _("unavailable"),
    )


def described(limit: Limit) -> str:
    """In words: `100 requests per minute, burst 20`."""
    if limit.burst is None:
        return limit.rate.describe()
    told = {"rate": limit.rate.describe(), "burst": limit.burst}
    return _("%(rate)s, burst %(burst)s") % told


def _mode(limit: Limit) -> str:
    if limit.mode == "shadow":
        return _("in shadow: never refuses")
    return _("switched off") if limit.mode == "off" else ""


def _source(limit: Limit, origin: Origin, plan: SafeString | str) -> SafeString | str:
    if origin.kind == "service":
        if limit.per == "address":
            return _("the service, for each address")
        return _("the service, for everyone together")
    if origin.kind == "own":
        return _("its own")
    if origin.kind == "plan":
        return format_html(_("plan {}"), plan)
    if origin.kind == "anonymous":
        return format_html(_("{}, the plan of anonymous callers"), plan)
    return format_html(_("{}, the default plan"), plan)


def _notes(origin: Origin, row: TenantLimit | None) -> Iterable[str]:
    if origin.kind != "own":
        return
    if origin.replaces is not None:
        yield replaces(named(origin.plan or "", origin.replaces))
    elif row is not None and row.replaces:
        yield gone(row)
    else:
        yield _("adds a limit")
    if origin.expires is not None:
        told = {"time": lasting(origin.expires - timezone.now()), "at": moment(origin.expires)}
        yield _("expires in %(time)s (%(at)s)") % told
        if origin.then is not None:
            yield _("then %(limit)s again") % {"limit": described(origin.then)}
    if row is not None and row.reason:
        yield _("reason: %(reason)s") % {"reason": row.reason}


def replaces(limit: str) -> str:
    return _("replaces %(limit)s") % {"limit": limit}


def gone(row: TenantLimit) -> str:
    return _("adds a limit: %(limit)s, which it replaced, is gone") % {"limit": row.replaces}


def _meter(level: Level) -> Meter | None:
    if level.capacity == 0:
        return None
    told = {"left": count(level.left), "capacity": count(level.capacity)}
    text = _("%(left)s of %(capacity)s left") % told
    return Meter(level.left, level.capacity, level.capacity * LOW // 100, text)


def _level(found: InForce) -> str:
    """What is said where there is no meter."""
    limit = found.limit
    if limit.rate.is_unlimited:
        return _("unlimited")
    if limit.mode == "off":
        return _("not counted")
    if found.level is not None:
        return _("refuses every request") if found.level.capacity == 0 else ""
    if limit.per == "address" and found.origin.kind == "service":
        return _("counted for each address, not for a tenant")
    return _("unavailable")


def _full(level: Level | None) -> str:
    if level is None or level.capacity == 0 or level.full is None:
        return ""
    if not level.full:
        return _("full")
    return _("full again in %(time)s") % {"time": lasting(level.full)}


def _plan_link(standing: Standing, viewer: Viewer) -> SafeString | str:
    """The plan's name, which leads to its page if there is one to see."""
    plan: Any = Plan.objects.filter(slug=standing.plan or "").first()
    if plan is None:
        return standing.plan or _("none")
    url = viewer.page_of(plan)
    return format_html('<a href="{}">{}</a>', url, plan) if url else str(plan)
