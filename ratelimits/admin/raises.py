"""A temporary raise, in two fields: which rate, and until when."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, router, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.dates import WEEKDAYS
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from ratelimits.exceptions import CatalogUnavailable
from ratelimits.models import Tenant, TenantLimit
from ratelimits.raising import end, lowers, raised
from ratelimits.rates import Rate
from ratelimits.standing import Standing, standing_of
from ratelimits.words import local, moment

from .pages import PagesAdmin
from .standing import described

FRIDAY = 4


class RaiseForm(forms.Form):
    """Which limit, its rate for the time being, until when, and why."""

    limit = forms.ChoiceField(label=gettext_lazy("limit"))
    rate = forms.CharField(
        label=gettext_lazy("rate until then"),
        max_length=50,
        help_text=gettext_lazy("For example 1000/m, 10/s, 50000/d or unlimited."),
        widget=forms.TextInput(attrs={"size": "12", "autocomplete": "off"}),
    )
    until = forms.ChoiceField(label=gettext_lazy("until"))
    at = forms.DateTimeField(
        label=gettext_lazy("or exactly until"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    reason = forms.CharField(label=gettext_lazy("reason"), max_length=200, required=False)

    def __init__(self, standing: Standing, data: Any = None) -> None:
        super().__init__(data, prefix="raise")
        own = [found for found in standing.limits if found.origin.kind != "service"]
        self.before = {
            found.limit.name: found.limit.rate
            for found in own
            if not found.limit.rate.is_unlimited and found.limit.mode != "off"
        }
        limit, until = self.fields["limit"], self.fields["until"]
        assert isinstance(limit, forms.ChoiceField) and isinstance(until, forms.ChoiceField)
        limit.choices = [
            (found.limit.name, f"{found.limit.name}: {described(found.limit)}")
            for found in own
            if found.limit.name in self.before
        ]
        limit.initial = next((found.limit.name for found in standing.refusing), None)
        self.ends = ends(local(timezone.now()))
        until.choices = [(name, label) for name, (label, _) in self.ends.items()]
        until.initial = "tomorrow"
        zone = {"zone": timezone.get_current_timezone_name()}
        self.fields["at"].help_text = (
            _("Counts instead of the choice before it. Time zone: %(zone)s.") % zone
        )

    def clean_rate(self) -> Rate:
        try:
            return Rate.parse(self.cleaned_data["rate"])
        except ValueError as error:
            raise ValidationError(str(error), code="invalid") from error

    def clean_at(self) -> datetime | None:
        at: datetime | None = self.cleaned_data["at"]
        if at is not None and at <= timezone.now():
            raise ValidationError(_("This time is over."), code="over")
        return at

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        rate, before = data.get("rate"), self.before.get(data.get("limit", ""))
        if rate is not None and before is not None and lowers(rate, before):
            text = _("That is less than now (%(rate)s).") % {"rate": before.describe()}
            self.add_error("rate", ValidationError(text, code="lower"))
        return data

    @property
    def end(self) -> datetime:
        at: datetime | None = self.cleaned_data["at"]
        return at or self.ends[self.cleaned_data["until"]][1]

    def row_for(self, tenant: Tenant) -> TenantLimit | None:
        """The row to save, if the model takes it; else the form has errors."""
        data = self.cleaned_data
        try:
            row: TenantLimit = raised(tenant, data["limit"], data["rate"], self.end, data["reason"])
            # Whether it is there already, only saving it can tell: see raise_view.
            row.full_clean(validate_constraints=False)
        except ValueError:
            # It was there when the form was made.
            self.add_error("limit", _("The tenant does not have this limit any more."))
            return None
        except ValidationError as error:
            for name, errors in error.error_dict.items():
                name = "at" if name == "expires_at" else name
                self.add_error(name if name in self.fields else None, errors)
            return None
        return row


def ends(now: datetime) -> dict[str, tuple[str, datetime]]:
    """Usual ends of a raise, each with what people call it. Days last until midnight."""
    found = {"hour": (_("for an hour"), now + timedelta(hours=1))}
    friday = (FRIDAY - now.weekday()) % 7
    days = [("today", 0, _("until tonight")), ("tomorrow", 1, _("until the end of tomorrow"))]
    if friday > 1:
        days.append(("friday", friday, _("until the end of Friday")))
    days += [("week", 7, _("for a week")), ("month", 30, _("for 30 days"))]
    for name, number, label in days:
        day = now.date() + timedelta(days=number)
        midnight = datetime.combine(day + timedelta(days=1), time())
        shown = f"{label} ({WEEKDAYS[day.weekday()]}, {date_format(day, 'MONTH_DAY_FORMAT')})"
        found[name] = (shown, timezone.make_aware(midnight, now.tzinfo) if now.tzinfo else midnight)
    return found


class RaisesAdmin(PagesAdmin[Tenant]):
    """Adds the page of the form, and the one that ends a raise."""

    def get_urls(self) -> list[Any]:
        return [
            self.page_path("<path:object_id>/raise/", self.raise_view, "raise"),
            self.page_path("<path:object_id>/end/", require_POST(self.end_view), "end"),
            *super().get_urls(),
        ]

    def may_raise(self, request: HttpRequest, tenant: Tenant) -> bool:
        """As for the limits in the tenant's form: its permission, and those of its limits."""
        user: Any = request.user
        of_limits = (f"{self.opts.app_label}.{verb}_tenantlimit" for verb in ("add", "change"))
        return self.has_change_permission(request, tenant) and all(map(user.has_perm, of_limits))

    def may_end(self, request: HttpRequest, tenant: Tenant) -> bool:
        """Who may raise, and delete what is left of a raise."""
        user: Any = request.user
        may_delete = user.has_perm(f"{self.opts.app_label}.delete_tenantlimit")
        return bool(may_delete) and self.may_raise(request, tenant)

    def raise_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        tenant = self.viewable(request, object_id)
        if not self.may_raise(request, tenant):
            raise PermissionDenied
        posted = request.POST if request.method == "POST" else None
        try:
            form = RaiseForm(standing_of(tenant.key), posted)
            done = form.is_valid() and self._raised(request, tenant, form)
        except CatalogUnavailable:
            # Perhaps whoever the setting PLAN asks is away.
            messages.error(request, _("None can be raised now: the limits are unavailable."))
            return HttpResponseRedirect(self.url_of("change", tenant.pk))
        if not done:
            template, title = "admin/ratelimits/tenant/raise.html", _("Raise a limit for a while")
            return self.page(request, template, title, tenant, form=form)
        return HttpResponseRedirect(self.url_of("change", tenant.pk))

    def _raised(
        self, request: HttpRequest, tenant: Tenant, form: RaiseForm, again: bool = True
    ) -> bool:
        """Whether it is saved; if not, the form says why."""
        row = form.row_for(tenant)
        if row is None:
            return False
        told = {"name": row.name, "limit": row.describe(), "at": moment(form.end)}
        # In brackets, since in English a time may end in a full stop itself.
        text = _("Raised “%(name)s” to %(limit)s (until %(at)s).") % told
        try:
            with transaction.atomic(using=row._state.db or router.db_for_write(TenantLimit)):
                row.save()
                self.log_change(request, tenant, f"{text} {row.reason}".strip())
        except IntegrityError:
            # Somebody was faster, perhaps by another click: now there is a row to be raised.
            if not again:
                raise
            return self._raised(request, tenant, form, again=False)
        messages.success(request, text)
        return True

    def end_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ends a limit that has an end, or clears away what is left of one that has ended."""
        tenant = self.viewable(request, object_id)
        if not self.may_end(request, tenant):
            raise PermissionDenied
        back = HttpResponseRedirect(self.url_of("change", tenant.pk))
        rows, chosen = tenant.limits.exclude(expires_at=None), request.POST.get("limit", "")
        row = next((row for row in rows if str(row.pk) == chosen), None)
        if row is None:
            messages.warning(request, _("There is nothing to end any more: somebody was faster."))
            return back
        told = {"name": row.name, "limit": row.describe()}
        if row.is_over:
            text = _("Removed “%(name)s” (%(limit)s), which had ended.") % told
        else:
            text = _("Ended “%(name)s” (%(limit)s) before its time.") % told
        with transaction.atomic(using=row._state.db):
            end(row)
            self.log_change(request, tenant, text)
        messages.success(request, text)
        return back
