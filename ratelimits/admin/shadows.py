"""Limits in shadow, which come to refuse by one button."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from ratelimits.models import Mode
from ratelimits.models.base import LimitModel

from .base import M
from .pages import PagesAdmin
from .shadow_panel import shadows_of


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
            context = {**context, "shadows": shadows_of(self.viewer(request), [(self, row)])}
        return super().render_change_form(request, context, *args, **kwargs)

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
