from __future__ import annotations

from collections.abc import Iterable

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from ratelimits.client.rows import load_terms
from ratelimits.client.traps import mistakes, risks
from ratelimits.models import Upstream, UpstreamLimit

from .base import LimitForm, TabularInline, TrapsAdmin, described
from .upstream_pages import UpstreamPagesAdmin


class UpstreamLimitInline(LimitForm, TabularInline[UpstreamLimit, Upstream]):
    model = UpstreamLimit
    verbose_name = _("limit")
    verbose_name_plural = _("limits")
    fields = ["name", "rate", "burst", "kind", "per"]


@admin.register(Upstream)
class UpstreamAdmin(UpstreamPagesAdmin, TrapsAdmin[Upstream]):
    """Other people's APIs, with the limits that they set us."""

    fieldsets = [
        (None, {"fields": ["name", "slug", "base_url"]}),
        (_("How calls behave"), {"fields": ["max_wait", "guard", "retry_statuses"]}),
    ]
    inlines = [UpstreamLimitInline]
    list_display = ["slug", "name", "rates", "max_wait"]
    list_filter = ["limits__kind", "limits__per"]
    prepopulated_fields = {"slug": ["name"]}
    search_fields = ["slug", "name"]

    class Media:
        css = {"all": ["ratelimits/tenant.css", "ratelimits/upstream.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Upstream]:
        return super().get_queryset(request).prefetch_related("limits")

    @admin.display(description=_("limits"))
    def rates(self, upstream: Upstream) -> SafeString:
        return described(upstream.limits.all())

    def traps(self, obj: Upstream) -> Iterable[str]:
        # Read again: what came with the page is from before it was saved.
        terms = load_terms(obj.slug)
        if terms is not None:
            yield from mistakes(terms)
            yield from risks(terms)
