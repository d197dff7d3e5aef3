"""Moving tenants to another plan: those selected in their list, or all of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import router, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ratelimits.models import Plan, Tenant
from ratelimits.words import count

from .labels import labelled
from .pages import PagesAdmin, selected

# Of so many the confirmation shows the names.
SHOWN = 50
BATCH = 1000


class MoveForm(forms.Form):
    """Where to. Nobody is there already who is asked for."""

    plan = forms.ModelChoiceField(queryset=Plan.objects.none(), label=gettext_lazy("to the plan"))

    def __init__(self, data: Any = None, leaving: Plan | None = None) -> None:
        super().__init__(data)
        plans: Any = self.fields["plan"]
        plans.queryset = Plan.objects.exclude(pk=leaving.pk) if leaving else Plan.objects.all()


class MovesAdmin(PagesAdmin[Tenant]):
    """Adds the action that moves tenants."""

    @admin.action(
        description=gettext_lazy("Move the selected tenants to another plan"),
        permissions=["change"],
    )
    def move_selected(
        self, request: HttpRequest, queryset: QuerySet[Tenant]
    ) -> HttpResponse | None:
        form = MoveForm(request.POST if request.POST.get("post") else None)
        if form.is_valid():
            plan = form.cleaned_data["plan"]
            say_moved(request, move(request, queryset, plan), plan)
            return None
        back = self.url_of("changelist")
        return move_page(self, request, queryset, form, selected(request), back)


def move_page(
    pages: PagesAdmin[Any],
    request: HttpRequest,
    tenants: QuerySet[Tenant],
    form: MoveForm,
    hidden: Sequence[tuple[str, str]],
    back: str,
    row: Plan | None = None,
) -> HttpResponse:
    """The page that asks where to. `hidden` is posted again, with `post`, by its form."""
    number = tenants.count()
    return pages.page(
        request,
        "admin/ratelimits/tenant/move.html",
        _("Move tenants to another plan"),
        row,
        form=form,
        number=number,
        names=[labelled(str(tenant), tenant.key) for tenant in tenants[:SHOWN]],
        more=max(0, number - SHOWN),
        hidden=[*hidden, ("post", "yes")],
        back=back,
    )


def move(request: HttpRequest, tenants: QuerySet[Tenant], plan: Plan) -> int:
    """Moves tenants, which their history tells, and gives how many were elsewhere before."""
    alias = router.db_for_write(Tenant)
    with transaction.atomic(using=alias):
        moving = tenants.using(alias).exclude(plan=plan).order_by("pk")
        for batch in _batches(moving.select_related("plan").iterator(BATCH)):
            _log(request, batch, plan)
        found = moving.order_by().values("pk")
        return Tenant.objects.using(alias).filter(pk__in=found).update(plan=plan)


def say_moved(request: HttpRequest, number: int, plan: Plan) -> None:
    text = ngettext(
        "%(number)s tenant moved to the plan “%(plan)s”.",
        "%(number)s tenants moved to the plan “%(plan)s”.",
        number,
    )
    messages.success(request, text % {"number": count(number), "plan": plan})


def _batches(tenants: Iterable[Tenant]) -> Iterable[list[Tenant]]:
    iterator = iter(tenants)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _log(request: HttpRequest, batch: list[Tenant], plan: Plan) -> None:
    """An entry in the history of each, which tells where it was before."""
    user: Any = request.user
    of_plan = sorted(batch, key=lambda tenant: tenant.plan_id or 0)
    for _pk, group in groupby(of_plan, key=lambda tenant: tenant.plan_id):
        found = list(group)
        told = {"before": found[0].plan or _("the default plan"), "after": plan}
        LogEntry.objects.log_actions(
            user.pk, found, CHANGE, _("Moved from “%(before)s” to “%(after)s”.") % told
        )
