"""What a tenant's page shows above its form: where it stands, and what can be done about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import django
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from ratelimits.models import Tenant, TenantLimit
from ratelimits.tenants import is_possible
from ratelimits.words import lasting, moment

from .finding import FindsAdmin
from .raises import RaiseForm, RaisesAdmin
from .standing import Panel, panel_of

# Before this version the tools of a form are part of the content that they stand above.
TOOLS_MOVED = (6, 1)


@dataclass(frozen=True)
class Ending:
    """A limit that has an end, or has ended."""

    pk: int
    name: str
    text: str
    button: str


@dataclass(frozen=True)
class Desk:
    """All of it. What the user may not do has no address, or no form."""

    panel: Panel
    warning: str
    ends: tuple[Ending, ...]
    may_end: bool
    reset_url: str
    raise_url: str
    end_url: str
    form: RaiseForm | None
    after_tools: bool = django.VERSION < TOOLS_MOVED


class TenantPagesAdmin(FindsAdmin, RaisesAdmin):
    """Shows a tenant's standing on its page."""

    change_form_template = "admin/ratelimits/tenant/change_form.html"

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        tenant = context.get("original")
        if isinstance(tenant, Tenant) and not context.get("is_popup"):
            context = {**context, "desk": self._desk(request, tenant)}
        return super().render_change_form(request, context, *args, **kwargs)

    def _desk(self, request: HttpRequest, tenant: Tenant) -> Desk:
        own = list(tenant.limits.all())
        panel = panel_of(tenant.key, self.viewer(request), own)
        may_raise = panel.standing is not None and self.may_raise(request, tenant)
        form = RaiseForm(panel.standing) if may_raise and panel.standing else None
        return Desk(
            panel=panel,
            warning=""
            if is_possible(tenant.key)
            else _("No resolver of this project makes a key like this."),
            ends=tuple(_endings(own)),
            may_end=self.may_end(request, tenant),
            reset_url=self.url_of("reset", tenant.pk) if self.has_reset_permission(request) else "",
            raise_url=self.url_of("raise", tenant.pk),
            end_url=self.url_of("end", tenant.pk),
            form=form if form is not None and form.before else None,
        )


def _endings(own: Iterable[TenantLimit]) -> Iterable[Ending]:
    for row in own:
        if row.expires_at is not None:
            text = _over(row) if row.is_over else _running(row)
            yield Ending(row.pk, row.name, text, _("Remove") if row.is_over else _("End now"))


def _running(row: TenantLimit) -> str:
    told = _told(row)
    if row.reason:
        return _("%(limit)s expires in %(time)s (%(at)s): %(reason)s") % told
    return _("%(limit)s expires in %(time)s (%(at)s).") % told


def _over(row: TenantLimit) -> str:
    told = _told(row)
    if row.rate_after:
        return _("%(limit)s expired %(time)s ago (%(at)s); it is as before.") % told
    return _("%(limit)s expired %(time)s ago (%(at)s): it counts no more.") % told


def _told(row: TenantLimit) -> dict[str, str]:
    assert row.expires_at is not None
    time = abs(row.expires_at - timezone.now())
    at = moment(row.expires_at)
    return {"limit": str(row), "time": lasting(time), "at": at, "reason": row.reason}
