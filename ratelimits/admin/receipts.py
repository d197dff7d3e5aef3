"""The page that explains a refusal by the receipt that the caller was given with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.formats import date_format, number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ratelimits.catalog import Caller
from ratelimits.limits import Limit
from ratelimits.models import Algorithm, Tenant
from ratelimits.rates import Rate
from ratelimits.receipts import NotAReceipt, Receipt, read
from ratelimits.receipts.values import CUT
from ratelimits.words import count, lasting, local

from .labels import tenant_label
from .pages import PagesAdmin
from .standing import Panel, described, panel_of
from .viewers import Viewer

LONGEST = 20_000


class ReceiptForm(forms.Form):
    receipt = forms.CharField(
        label=gettext_lazy("receipt"),
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"cols": 80}),
        help_text=gettext_lazy(
            "The text “instance” of the refusal. The whole answer will do, or the mail that it "
            "came in."
        ),
    )

    def __init__(self, data: Any = None, rows: int = 6) -> None:
        super().__init__(data)
        self.fields["receipt"].widget.attrs["rows"] = rows

    def clean_receipt(self) -> Receipt:
        try:
            return read(self.cleaned_data["receipt"])
        except NotAReceipt as error:
            raise forms.ValidationError(str(error), code="receipt") from error


@dataclass(frozen=True)
class Explained:
    """What a page says of a refusal."""

    story: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    name: str
    label: SafeString | None
    url: str
    now: Panel | None


class ReceiptsAdmin(PagesAdmin[Tenant]):
    """Adds the page, for those who may look at tenants."""

    def get_urls(self) -> list[Any]:
        page = self.page_path("receipt/", self.receipt_view, "receipt", of_app=True)
        return [page, *super().get_urls()]

    def receipt_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = ReceiptForm(request.POST if request.method == "POST" else None)
        found = self._explained(request, form.cleaned_data["receipt"]) if form.is_valid() else None
        template, title = "admin/ratelimits/tenant/receipt.html", _("Explain a refusal")
        return self.page(request, template, title, form=form, found=found)

    def _explained(self, request: HttpRequest, receipt: Receipt) -> Explained:
        key = receipt.occasion.tenant
        tenant = None if key is None else _tenant(key)
        if tenant is not None:
            key = tenant.key
        return Explained(
            story=tuple(_story(receipt, str(tenant or key or ""))),
            facts=tuple(_facts(receipt)),
            name=str(tenant or key or receipt.occasion.address),
            label=tenant_label(key) if key else None,
            url=self.url_of("change", tenant.pk) if tenant else "",
            now=_now(receipt, key, self.viewer(request)),
        )


def _tenant(key: str) -> Tenant | None:
    """The row of a tenant whose key may have been cut."""
    if key.endswith(CUT):
        found = list(Tenant.objects.filter(key__startswith=key.removesuffix(CUT))[:2])
        return found[0] if len(found) == 1 else None
    return Tenant.objects.filter(key=key).first()


def _now(receipt: Receipt, key: str | None, viewer: Viewer) -> Panel | None:
    """Where the caller stands now; None if it is not known well enough."""
    if key is not None:
        return None if key.endswith(CUT) or not key else panel_of(key, viewer)
    address = receipt.occasion.address
    return panel_of(Caller(None, address), viewer) if address else None


def _story(receipt: Receipt, name: str) -> Iterator[str]:
    """What happened, as one reads it out to the caller."""
    occasion = receipt.occasion
    told = {"name": name, "address": occasion.address or "?", "when": _when(receipt.at)}
    told["ago"] = lasting(abs(receipt.age))
    if occasion.tenant is None:
        text = _("A caller without a tenant, at %(address)s, was refused on %(when)s, %(ago)s ago.")
    elif occasion.address:
        text = _("“%(name)s” was refused on %(when)s, %(ago)s ago, calling from %(address)s.")
    else:
        text = _("“%(name)s” was refused on %(when)s, %(ago)s ago.")
    yield text % told
    yield _why(receipt)
    yield _told_to_wait(receipt)
    if occasion.local and receipt.limit:
        yield _(
            "The process decided this by itself: it knew from just before that nothing was left, "
            "or the store was away."
        )


def _why(receipt: Receipt) -> str:
    if not receipt.limit:
        return _("No limit was to blame: the store that holds the counts could not be reached.")
    limit = _limit(receipt)
    told = {
        "limit": receipt.limit,
        "rate": receipt.rate if limit is None else described(limit),
        "left": count(receipt.remaining),
        "of": count(limit.capacity) if limit else "?",
        "cost": count(receipt.cost),
    }
    if limit is not None and limit.quota == 0:
        return _("The limit “%(limit)s” (%(rate)s) refuses every request.") % told
    if limit is not None and receipt.cost > limit.capacity:
        return (
            _(
                "The request cost %(cost)s, and the limit “%(limit)s” (%(rate)s) never lets more "
                "than %(of)s pass at once."
            )
            % told
        )
    return _whose(receipt) % told


def _whose(receipt: Receipt) -> str:
    if receipt.per == "everyone":
        return _(
            "The service as a whole was busy, whatever the caller had used: the limit “%(limit)s” "
            "for everyone together (%(rate)s) had %(left)s of %(of)s left, and the request cost "
            "%(cost)s."
        )
    if receipt.per == "address":
        return _(
            "For this address, the limit “%(limit)s” (%(rate)s) had %(left)s of %(of)s left, and "
            "the request cost %(cost)s."
        )
    return _(
        "The limit “%(limit)s” (%(rate)s) had %(left)s of %(of)s left, and the request cost "
        "%(cost)s."
    )


def _told_to_wait(receipt: Receipt) -> str:
    if receipt.retry_after is None:
        return _("The caller was told that trying again does not help.")
    wait = timedelta(seconds=receipt.retry_after)
    told = {"wait": lasting(wait), "until": _when(receipt.at + wait)}
    if wait > receipt.age:
        return (
            _("The caller was told to wait %(wait)s, until %(until)s. That is still to come.")
            % told
        )
    return _("The caller was told to wait %(wait)s, until %(until)s. That time is over.") % told


def _limit(receipt: Receipt) -> Limit | None:
    """The limit as it was; None if its rate was too long for a receipt."""
    try:
        rate = Rate.parse(receipt.rate)
    except ValueError:
        return None
    return Limit(receipt.limit, rate, receipt.burst, algorithm=receipt.algorithm, per=receipt.per)


def _facts(receipt: Receipt) -> Iterator[tuple[str, str]]:
    """The same again, to compare with logs."""
    occasion, none = receipt.occasion, _("none")
    yield _("time"), receipt.at.isoformat(sep=" ", timespec="milliseconds")
    yield _("tenant"), none if occasion.tenant is None else occasion.tenant
    yield _("address"), occasion.address or _("not known")
    yield _("path"), occasion.path or _("not known")
    yield _("scope"), occasion.scope or none
    yield _("status"), str(receipt.status)
    yield _("limit"), receipt.limit or none
    if receipt.limit:
        burst = none if receipt.burst is None else number_format(receipt.burst)
        yield _("rate"), receipt.rate
        yield _("burst"), burst
        named = dict(Algorithm.choices).get(receipt.algorithm, receipt.algorithm)
        yield _("algorithm"), str(named)
        yield _("left"), number_format(receipt.remaining)
    yield _("cost"), number_format(receipt.cost)
    seconds = receipt.retry_after
    yield _("Retry-After"), none if seconds is None else number_format(seconds)
    yield _("decided by"), _("the process") if occasion.local else _("the store")


def _when(at: datetime) -> str:
    """To the second."""
    here = local(at)
    return f"{date_format(here, 'DATE_FORMAT')}, {date_format(here, 'H:i:s T')}"
