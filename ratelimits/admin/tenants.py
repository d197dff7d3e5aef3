from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Field, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ratelimits.conf import conf
from ratelimits.models import Plan, PlanLimit, Tenant, TenantLimit
from ratelimits.tenants import examples

from .base import TrapsAdmin
from .dashboard import DashboardAdmin
from .labels import tenant_label
from .moves import MovesAdmin
from .receipts import ReceiptsAdmin
from .tenant_limits import OwnLimitsFilter, TenantLimitInline, listed
from .tenant_pages import TenantPagesAdmin
from .tenant_usage import UsageAdmin, seen_without_row
from .traps import traps


@admin.register(Tenant)
class TenantAdmin(
    DashboardAdmin,
    ReceiptsAdmin,
    MovesAdmin,
    TenantPagesAdmin,
    UsageAdmin,
    TrapsAdmin[Tenant],
):
    """Tenants, the plan of each, and what was agreed with them beyond it."""

    actions = ["move_selected", "reset_selected"]
    autocomplete_fields = ["plan"]
    fields = ["key", "name", "plan", "notes"]
    inlines = [TenantLimitInline]
    list_display = [
        "key",
        "name",
        "plan_name",
        "requests_lately",
        "refused_lately",
        "own_limits",
    ]
    list_filter = ["plan", OwnLimitsFilter]
    list_select_related = ["plan"]
    search_fields = ["key", "name"]

    class Media:
        css = {"all": ["ratelimits/tenant.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tenant]:
        return super().get_queryset(request).prefetch_related("limits")

    def formfield_for_dbfield(
        self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.Field | None:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name == "key":
            is_new = not _object_id(request)
            field.help_text = _key_help(is_new)
            # One that is there may have spaces around it, and is not to be changed unseen.
            field.strip = is_new  # type: ignore[attr-defined]
        return field

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        key, *others = super().get_list_display(request)
        return [key, *_label_field(), *others]

    def get_fields(self, request: HttpRequest, obj: Tenant | None = None) -> list[Any]:
        key, *others = super().get_fields(request, obj)
        return [key, *(_label_field() if obj else []), *others]

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> list[Any]:
        return [*super().get_readonly_fields(request, obj), *_label_field()]

    @admin.display(description=_("who it is"))
    def label(self, tenant: Tenant) -> SafeString | None:
        return tenant_label(tenant.key)

    @admin.display(description=_("plan"), ordering="plan__name")
    def plan_name(self, tenant: Tenant) -> str:
        return str(tenant.plan or gettext("the default one"))

    @admin.display(description=_("limits of its own"))
    def own_limits(self, tenant: Tenant) -> SafeString:
        return listed(tenant.limits.all())

    def traps(self, obj: Tenant) -> Iterable[str]:
        # Read again: what came with the page is from before it was saved.
        limits = TenantLimit.objects.using(obj._state.db).filter(tenant=obj)
        own = limits.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()))
        plans = Plan.objects.using(obj._state.db)
        plan = obj.plan or plans.filter(is_default=True).first()
        sold = PlanLimit.objects.using(obj._state.db).filter(plan=plan)
        return traps(own, beside=sold.exclude(name__in=own.values("name")))


def _object_id(request: HttpRequest) -> str | None:
    """Whose page it is; None for a new tenant's."""
    found = request.resolver_match
    return found.kwargs.get("object_id") if found else None


def _key_help(is_new: bool) -> SafeString:
    """How keys look that the project's resolvers make, and which callers have no row yet.

    Escaped, since the admin takes texts of help for HTML, and keys may be of anybody's making.
    """
    looks = ", ".join(examples())
    text = gettext("As the TENANT setting gives it.")
    if looks:
        text = gettext("As the TENANT setting gives it, such as %s.") % looks
    seen = ", ".join(seen_without_row()) if is_new else ""
    if seen:
        text = f"{text} {gettext('Seen lately, without a row: %s.') % seen}"
    return escape(text)


def _label_field() -> list[str]:
    return ["label"] if conf.TENANT_LABEL else []
