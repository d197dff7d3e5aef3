"""What an upstream's page shows above its form: how calls stand, and how to let them go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import django
from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from ratelimits.client import upstream
from ratelimits.client.gate import Gate
from ratelimits.effects import drive
from ratelimits.exceptions import RateLimitError
from ratelimits.models import Upstream

from .pages import PagesAdmin
from .tenant_pages import TOOLS_MOVED
from .upstream_standing import Calls, CredentialPanel, calls_of, panel_of, short

# Of what is pasted, such as a token with claims.
LONGEST = 10_000
LIFTED = gettext_noop("Let calls with the credential %s go on.")


class CredentialForm(forms.Form):
    """A credential is never sent back."""

    credential = forms.CharField(
        label=gettext_lazy("credential"),
        max_length=LONGEST,
        strip=False,
        help_text=gettext_lazy(
            "As the code gives it to upstream(), pasted. Nothing keeps or shows it."
        ),
        widget=forms.PasswordInput(attrs={"size": "40", "autocomplete": "off"}),
    )
    customer = forms.CharField(
        label=gettext_lazy("customer"),
        max_length=255,
        required=False,
        strip=False,
        help_text=gettext_lazy("The key of the tenant in whose name we call, for its share."),
        widget=forms.TextInput(attrs={"size": "20", "autocomplete": "off"}),
    )


class LiftForm(forms.Form):
    """As it is posted by a page that shows a credential by its digest."""

    digest = forms.RegexField(r"^[A-Za-z0-9_=-]{8,64}$")


@dataclass(frozen=True)
class UpstreamDesk:
    """All of it. What the user may not do has no address."""

    calls: Calls
    form: CredentialForm
    look_url: str
    lift_url: str
    after_tools: bool = django.VERSION < TOOLS_MOVED


class UpstreamPagesAdmin(PagesAdmin[Upstream]):
    """Shows how calls stand, finds the state of a credential, and lifts a block."""

    change_form_template = "admin/ratelimits/upstream/change_form.html"

    def get_urls(self) -> list[Any]:
        return [
            self.page_path("<path:object_id>/look/", require_POST(self.look_view), "look"),
            self.page_path("<path:object_id>/lift/", require_POST(self.lift_view), "lift"),
            *super().get_urls(),
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = context.get("original")
        if isinstance(row, Upstream) and not context.get("is_popup"):
            # Not as a form that was refused would have it.
            slug = Upstream.objects.values_list("slug", flat=True).filter(pk=row.pk).first()
            desk = self._desk(request, row, CredentialForm(), calls_of(slug or ""))
            context = {**context, "desk": desk}
        return super().render_change_form(request, context, *args, **kwargs)

    def _desk(
        self, request: HttpRequest, row: Upstream, form: CredentialForm, calls: Calls
    ) -> UpstreamDesk:
        may_lift = self.has_change_permission(request, row)
        return UpstreamDesk(
            calls=calls,
            form=form,
            look_url=self.url_of("look", row.pk),
            lift_url=self.url_of("lift", row.pk) if may_lift else "",
        )

    @method_decorator(sensitive_post_parameters("credential"))
    @method_decorator(sensitive_variables())
    def look_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Shows the state of a credential that was pasted."""
        row = self.viewable(request, object_id)
        form = CredentialForm(request.POST)
        gate = _gate(row, form) if form.is_valid() else None
        _forget_secret(request, form)
        calls = _looked(gate) if gate else Calls(True)
        desk = self._desk(request, row, form, calls)
        template, title = "admin/ratelimits/upstream/look.html", _("Look at a credential")
        return self.page(request, template, title, row, desk=desk)

    def lift_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks for a confirmation, then lets calls with a credential leave again."""
        row = self.viewable(request, object_id)
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        form, back = LiftForm(request.POST), self.url_of("change", row.pk)
        if not form.is_valid():
            messages.error(request, _("Open the page again."))
            return HttpResponseRedirect(back)
        digest = form.cleaned_data["digest"]
        told = {"credential": short(digest), "upstream": row}
        if not request.POST.get("post"):
            hidden = [("digest", digest), ("post", "yes")]
            template, title = "admin/ratelimits/upstream/lift.html", _("Let calls go on")
            return self.page(request, template, title, row, hidden=hidden, back=back, **told)
        if self._lift(request, row, digest):
            text = _("Calls to “%(upstream)s” with the credential %(credential)s go on.")
            messages.success(request, text % told)
        return HttpResponseRedirect(back)

    def _lift(self, request: HttpRequest, row: Upstream, digest: str) -> bool:
        """Whether calls go on. If not, the user is told why."""
        gate = Gate(row.slug, digest)
        try:
            # What is lifted in this process alone, while the store is away, helps nobody.
            drive(gate.look())
            drive(gate.lift())
        except RateLimitError:
            messages.error(
                request, _("Nothing was changed: the store that holds the counts can't be reached.")
            )
            return False
        self.log_change(request, row, _(LIFTED) % short(digest))
        return True


@sensitive_variables()
def _gate(row: Upstream, form: CredentialForm) -> Gate:
    """The gate that calls with a credential pass."""
    data = form.cleaned_data
    return upstream(row.slug, data["credential"], data["customer"] or None).gate()


def _looked(gate: Gate) -> Calls:
    try:
        panels: tuple[CredentialPanel, ...] = (panel_of(gate),)
    except RateLimitError:
        return Calls(False)
    return Calls(True, panels)


def _forget_secret(request: HttpRequest, form: CredentialForm) -> None:
    """So that no report of whatever fails later can hold it."""
    posted = request.POST.copy()
    posted.pop("credential", None)
    request.POST = posted  # type: ignore[assignment]
    form.data = posted
    getattr(form, "cleaned_data", {}).pop("credential", None)
