"""Limits in shadow: what they would have refused and whom, and how they come to refuse it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import django
from django.contrib import messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from ratelimits.exceptions import RateLimitError
from ratelimits.limits import Owner
from ratelimits.models import Mode, Tenant
from ratelimits.models.base import LimitModel
from ratelimits.usage import Shadow, Top, shadows

from .base import M
from .pages import PagesAdmin
from .tenant_pages import TOOLS_MOVED
from .words import count, local


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


class ShadowsAdmin(PagesAdmin[M]):
    """Shows what limits in shadow would have refused, and has them enforce with one button."""

    def get_urls(self) -> list[Any]:
        page = self.page_path("<path:object_id>/enforce/", self.enforce_view, "enforce")
        return [page, *super().get_urls()]

    def limits_of(self, row: M) -> Iterable[LimitModel]:
        """The limits on the page of a row."""
        raise NotImplementedError

    def may_enforce(self, request: HttpRequest, row: M) -> bool:
        return self.has_change_permission(request, row)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = context.get("original")
        if row is not None and not context.get("is_popup"):
            context = {**context, "shadows": self.shadows(request, [row])}
        return super().render_change_form(request, context, *args, **kwargs)

    def shadows(self, request: HttpRequest, rows: Iterable[M]) -> Shadows | None:
        """Of the limits of some rows; None if none of them is in shadow."""
        found = [
            (row, limit)
            for row in rows
            for limit in self.limits_of(row)
            if limit.mode == Mode.SHADOW
        ]
        if not found:
            return None
        known, seen = True, dict[str, Shadow]()
        try:
            seen = shadows([limit.name for _row, limit in found])
        except RateLimitError:
            known = False
        pages = _pages_of([shadow.top for shadow in seen.values()])
        told = (self._row(request, *pair, seen.get(pair[1].name), pages) for pair in found)
        return Shadows(tuple(told), known)

    def _row(
        self,
        request: HttpRequest,
        row: M,
        limit: LimitModel,
        shadow: Shadow | None,
        pages: Mapping[str, Tenant],
    ) -> Row:
        return Row(
            name=limit.name,
            of="" if row == limit else str(row),
            limit=limit.describe(),
            pk=limit.pk,
            page_url=self.url_of("change", quote(row.pk)),
            told=tuple(_told(shadow)) if shadow else (),
            callers=tuple(_callers(shadow.top, pages)) if shadow else (),
            enforce_url=(
                self.url_of("enforce", quote(row.pk)) if self.may_enforce(request, row) else ""
            ),
        )

    @method_decorator(require_POST)
    def enforce_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """One limit in shadow enforces from now on."""
        row = self.viewable(request, object_id)
        if not self.may_enforce(request, row):
            raise PermissionDenied
        chosen = request.POST.get("limit", "")
        limit = next((limit for limit in self.limits_of(row) if str(limit.pk) == chosen), None)
        if limit is None:
            raise Http404
        if limit.mode == Mode.SHADOW:
            limit.mode = Mode.ENFORCE
            limit.save(update_fields=["mode"])
            self.log_change(request, row, _changed(row, limit))
            messages.success(request, _("“%s” enforces from now on.") % limit.name)
        return HttpResponseRedirect(self.url_of("change", quote(row.pk)))


def _changed(row: Model, limit: LimitModel) -> list[dict[str, Any]]:
    """As Django tells of an edited inline, or of the row itself."""
    if row == limit:
        return [{"changed": {"fields": ["mode"]}}]
    named = {"name": str(limit._meta.verbose_name), "object": str(limit), "fields": ["mode"]}
    return [{"changed": named}]


def _told(shadow: Shadow) -> Iterable[str]:
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
    if shadow.top.callers:
        since = local(shadow.top.since).strftime("%H:%M")
        yield _("Since %(time)s it would have refused most often:") % {"time": since}


def _pages_of(tops: Iterable[Top]) -> dict[str, Tenant]:
    """The rows of those tenants that have one, by their keys."""
    keys = {used.owner.key for top in tops for used in top.callers if used.owner.kind == "tenant"}
    return {tenant.key: tenant for tenant in Tenant.objects.filter(key__in=keys)}


def _callers(top: Top, pages: Mapping[str, Tenant]) -> Iterable[Caller]:
    for used in top.callers:
        tenant = pages.get(used.owner.key) if used.owner.kind == "tenant" else None
        url = reverse("admin:ratelimits_tenant_change", args=[quote(tenant.pk)]) if tenant else ""
        name = str(tenant) if tenant else _named(used.owner)
        yield Caller(name, url, count(used.counts.shadow))


def _named(owner: Owner) -> str:
    if owner.kind == "by":
        return _("callers of limits in code")
    return owner.key or _("unknown")


__all__: Sequence[str] = ["Caller", "Row", "Shadows", "ShadowsAdmin"]
