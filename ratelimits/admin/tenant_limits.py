"""A tenant's own limits: in its form, in the list, and as a way to filter that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ratelimits.exceptions import CatalogUnavailable
from ratelimits.models import Plan, PlanLimit, Tenant, TenantLimit
from ratelimits.overrides import replaced_by
from ratelimits.words import lasting

from .base import LimitForm, StackedInline
from .standing import gone, replaces


class TenantLimitInline(LimitForm, StackedInline[TenantLimit, Tenant]):
    model = TenantLimit
    verbose_name = gettext_lazy("limit")
    verbose_name_plural = gettext_lazy("limits of its own: one named like the plan's replaces it")
    readonly_fields = ["effect"]
    fields = [
        "effect",
        ("name", "rate", "burst", "scope"),
        ("algorithm", "mode", "on_store_failure"),
        ("expires_at", "reason"),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[TenantLimit]:
        return super().get_queryset(request).select_related("tenant")

    @admin.display(description=gettext_lazy("what it does"))
    def effect(self, row: TenantLimit) -> str:
        return _("%s.") % ", ".join(_effects(row)) if row.pk else "-"


def _effects(row: TenantLimit) -> Iterable[str]:
    if row.is_over and not row.rate_after:
        yield _("has ended, and counts no more")
        return
    try:
        replaced = replaced_by(row.tenant.key, row.name)
    except CatalogUnavailable:
        replaced = row.replaces
    if replaced:
        yield replaces(replaced)
    else:
        yield gone(row) if row.replaces else _("adds a limit")
    yield from _ends(row)


def _ends(row: TenantLimit) -> Iterable[str]:
    after = row.afterwards()
    if row.is_over and after is not None:
        yield _("has ended, and is %(limit)s again") % {"limit": after.describe()}
    elif row.expires_at is not None and not row.is_over:
        yield _("expires in %(time)s") % {"time": lasting(row.expires_at - timezone.now())}
        if after is not None:
            yield _("then %(limit)s again") % {"limit": after.describe()}


def listed(rows: Iterable[TenantLimit]) -> SafeString:
    """One line for each limit, with what becomes of it."""
    lines = ((", ".join((str(row), *_listed(row))),) for row in rows)
    return format_html_join(mark_safe("<br>"), "{}", lines) or mark_safe("-")


def _listed(row: TenantLimit) -> Iterable[str]:
    if row.is_over and not row.rate_after:
        yield _("has ended")
    yield from _ends(row)


class OwnLimitsFilter(admin.SimpleListFilter):
    """Also those whose plan has lost what they replace, by the plan that their row names."""

    title = gettext_lazy("limits of their own")
    parameter_name = "own"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("yes", gettext_lazy("Yes")),
            ("no", gettext_lazy("No")),
            ("while", gettext_lazy("For a while")),
            ("over", gettext_lazy("Ended")),
            ("gone", gettext_lazy("The plan's limit is gone")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        own = TenantLimit.objects.filter(tenant=OuterRef("pk"))
        if value == "no":
            return queryset.exclude(Exists(own))
        if value == "yes":
            return queryset.filter(Exists(own))
        if value == "while":
            return queryset.filter(Exists(own.filter(expires_at__gt=timezone.now())))
        if value == "over":
            return queryset.filter(Exists(own.filter(expires_at__lte=timezone.now())))
        return queryset.filter(Exists(_orphans(own))) if value == "gone" else queryset


def _orphans(own: QuerySet[TenantLimit]) -> QuerySet[TenantLimit]:
    """Those in force that replaced a limit which their plan does not have any more."""
    default = Subquery(Plan.objects.filter(is_default=True).values("pk")[:1])
    plan = Coalesce(OuterRef("tenant__plan"), default)
    sold = PlanLimit.objects.filter(plan=plan, name=OuterRef("name"))
    lasting = Q(expires_at=None) | Q(expires_at__gt=timezone.now()) | ~Q(rate_after="")
    return own.exclude(replaces="").filter(lasting).exclude(Exists(sold))
