from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.db import router, transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ratelimits.models import Plan, PlanLimit, Tenant

from .base import LimitForm, TabularInline, TrapsAdmin, described
from .plan_pages import PlanPagesAdmin
from .shadows import ShadowsAdmin
from .traps import traps


class PlanLimitInline(LimitForm, TabularInline[PlanLimit, Plan]):
    model = PlanLimit
    verbose_name = _("limit")
    verbose_name_plural = _("limits")
    fields = ["name", "rate", "burst", "scope", "algorithm", "mode", "on_store_failure"]


@admin.register(Plan)
class PlanAdmin(PlanPagesAdmin, ShadowsAdmin[Plan], TrapsAdmin[Plan]):
    """Plans with their limits in one form."""

    actions = ["make_default"]
    fields = ["name", "slug", "description", "is_default", "is_anonymous"]
    inlines = [PlanLimitInline]
    list_display = ["name", "slug", "rates", "is_default", "is_anonymous", "tenant_count"]
    list_filter = ["is_default", "is_anonymous", "limits__algorithm", "limits__mode"]
    prepopulated_fields = {"slug": ["name"]}
    save_as = True
    search_fields = ["name", "slug"]

    class Media:
        css = {"all": ["ratelimits/tenant.css", "ratelimits/shadows.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Plan]:
        plans = super().get_queryset(request).prefetch_related("limits")
        # Not by a join: grouping would lose the order that the model has.
        of_plan = Tenant.objects.filter(plan=OuterRef("pk")).order_by().values("plan")
        count = Subquery(of_plan.annotate(count=Count("pk")).values("count"))
        return plans.annotate(tenant_count=Coalesce(count, 0))

    @admin.display(description=_("limits"))
    def rates(self, plan: Plan) -> SafeString:
        return described(plan.limits.all())

    @admin.display(description=_("tenants"), ordering="tenant_count")
    def tenant_count(self, plan: Any) -> int:
        return int(plan.tenant_count)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        @admin.display(description=_("tenants"), ordering="tenant_count")
        def tenant_count(plan: Any) -> SafeString:
            url = self.tenants_url(request, plan)
            return format_html('<a href="{}">{}</a>', url, plan.tenant_count)

        shown = list(super().get_list_display(request))
        if self.viewer(request).list_of(Tenant):
            return [tenant_count if name == "tenant_count" else name for name in shown]
        return shown

    @admin.action(description=_("Make the selected plan the default one"), permissions=["change"])
    def make_default(self, request: HttpRequest, queryset: QuerySet[Plan]) -> None:
        """Moves the mark at once, so that tenants without a plan never lack a default."""
        if len(queryset) != 1:
            messages.error(request, gettext("Select one plan: only one can be the default."))
            return
        alias = router.db_for_write(Plan)
        plan = queryset[0]
        with transaction.atomic(using=alias):
            for other in Plan.objects.using(alias).filter(is_default=True).exclude(pk=plan.pk):
                self._mark(request, other, False)
            self._mark(request, plan, True)
        messages.success(request, gettext("“%s” is the default plan now.") % plan)

    def _mark(self, request: HttpRequest, plan: Plan, is_default: bool) -> None:
        plan.is_default = is_default
        plan.save(update_fields=["is_default"])
        self.log_change(request, plan, [{"changed": {"fields": ["default"]}}])

    def limits_of(self, row: Plan) -> Iterable[PlanLimit]:
        return row.limits.all()

    def may_enforce(self, request: HttpRequest, row: Plan) -> bool:
        may_change = request.user.has_perm("ratelimits.change_planlimit")
        return may_change and super().may_enforce(request, row)

    def traps(self, obj: Plan) -> Iterable[str]:
        # Read again: what came with the page is from before it was saved.
        limits = PlanLimit.objects.using(obj._state.db).filter(plan=obj)
        if not limits:
            yield gettext("This plan has no limits: nothing is refused to whoever is on it.")
        if not Plan.objects.using(obj._state.db).filter(is_default=True).exists():
            yield gettext("No plan is the default: tenants without a plan are not limited.")
        yield from traps(limits)
