"""What limits in shadow would have refused and whom, in the words of the pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import django
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits.exceptions import RateLimitError
from ratelimits.limits import Owner
from ratelimits.models import Mode, Tenant
from ratelimits.models.base import LimitModel
from ratelimits.usage import Shadow, Top, shadows
from ratelimits.words import count, local

from .tenant_pages import TOOLS_MOVED
from .viewers import Viewer

if TYPE_CHECKING:
    from .shadows import ShadowsAdmin


@dataclass(frozen=True)
class Caller:
    """Somebody who would have been refused. Who has no row has no page."""

    name: str
    url: str
    times: str


@dataclass(frozen=True)
class Row:
    """One limit in shadow. Without the permission to change it, there is no address for that."""

    name: str
    of: str
    limit: str
    pk: int
    page_url: str
    told: tuple[str, ...]
    callers: tuple[Caller, ...]
    enforce_url: str


@dataclass(frozen=True)
class Shadows:
    """All of those on a page."""

    rows: tuple[Row, ...]
    known: bool
    after_tools: bool = django.VERSION < TOOLS_MOVED


# The page of what row a limit is on, and of which model.
Place = tuple["ShadowsAdmin[Any]", Any, LimitModel]


def shadows_of(viewer: Viewer, pages: Iterable[tuple[ShadowsAdmin[Any], Any]]) -> Shadows | None:
    """Of the limits on some rows' pages; None if none of them is in shadow."""
    places = [
        (admin, row, limit)
        for admin, row in pages
        for limit in admin.limits_of(row)
        if limit.mode == Mode.SHADOW
    ]
    if not places:
        return None
    try:
        seen, known = shadows([limit.name for _admin, _row, limit in places]), True
    except RateLimitError:
        seen, known = {}, False
    callers = _callers(viewer, seen)
    rows = (_row(viewer.request, place, seen.get(place[2].name), callers) for place in places)
    return Shadows(tuple(rows), known)


def _row(
    request: HttpRequest,
    place: Place,
    shadow: Shadow | None,
    callers: Mapping[str, tuple[Caller, ...]],
) -> Row:
    admin, row, limit = place
    may_enforce = admin.may_enforce(request, row)
    told = callers.get(limit.name, ())
    return Row(
        name=limit.name,
        of="" if row == limit else str(row),
        limit=limit.describe(),
        pk=limit.pk,
        page_url=admin.url_of("change", quote(row.pk)),
        told=tuple(_told(shadow, bool(told))) if shadow else (),
        callers=told,
        enforce_url=admin.url_of("enforce", quote(row.pk)) if may_enforce else "",
    )


def _told(shadow: Shadow, names_callers: bool) -> Iterable[str]:
    if not shadow.day and not shadow.hour:
        yield _("It would have refused nothing in the last day.")
        return
    hour, day = shadow.hour, max(shadow.hour, shadow.day)
    yield ngettext(
        "It would have refused %(day)s request in the last day, %(hour)s of it in the last hour.",
        "It would have refused %(day)s requests in the last day, %(hour)s of them in the last "
        "hour.",
        day,
    ) % {"day": count(day), "hour": count(hour)}
    if names_callers:
        since = local(shadow.top.since).strftime("%H:%M")
        yield _("Since %(time)s it would have refused most often:") % {"time": since}


def _callers(viewer: Viewer, seen: Mapping[str, Shadow]) -> Mapping[str, tuple[Caller, ...]]:
    """By the names of limits, for those who may see tenants. One query for all."""
    names = ("ratelimits.view_tenant", "ratelimits.change_tenant")
    if not any(map(viewer.request.user.has_perm, names)):
        return {}
    keys = {used.owner.key for shadow in seen.values() for used in shadow.top.callers}
    rows = {row.key: row for row in Tenant.objects.filter(key__in=keys).only("key", "name")}
    return {name: tuple(_named(shadow.top, rows, viewer)) for name, shadow in seen.items()}


def _named(top: Top, rows: Mapping[str, Tenant], viewer: Viewer) -> Iterable[Caller]:
    for used in top.callers:
        tenant = rows.get(used.owner.key) if used.owner.kind == "tenant" else None
        url = viewer.page_of(tenant) if tenant else ""
        yield Caller(str(tenant or _name(used.owner)), url, count(used.counts.shadow))


def _name(owner: Owner) -> str:
    if owner.kind == "by":
        return _("callers of limits in code")
    return owner.key or _("unknown")
