"""Finding a caller by its key or a credential, also one that has no row, and giving it one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from ratelimits.credentials import headers_tried, key_of_user, owner_of
from ratelimits.models import Tenant
from ratelimits.tenants import is_possible

from .labels import tenant_label
from .resets import ResetsAdmin
from .standing import Panel, panel_of


class FindForm(forms.Form):
    """By what is known of a caller. The credential is never sent back."""

    key = forms.CharField(
        label=gettext_lazy("key, name or user"),
        required=False,
        max_length=255,
        help_text=gettext_lazy("A tenant's key or name, or a user's name or e-mail address."),
        widget=forms.TextInput(attrs={"size": "40", "autocomplete": "off"}),
    )
    credential = forms.CharField(
        label=gettext_lazy("or a credential"),
        required=False,
        max_length=10_000,
        widget=forms.PasswordInput(attrs={"size": "40", "autocomplete": "off"}),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        told = {"headers": ", ".join(headers_tried())}
        self.fields["credential"].help_text = (
            _(
                "An API key or a token, pasted. It is looked for as these headers: %(headers)s. "
                "Nothing keeps or shows it."
            )
            % told
        )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not self.errors and bool(data.get("key")) == bool(data.get("credential")):
            raise ValidationError(_("Fill in one of the two."), code="one")
        return data


@dataclass(frozen=True)
class Found:
    """A caller, where it stands, and what the user may do about it."""

    key: str
    how: str
    label: SafeString | None
    name: str
    url: str
    warning: str | Promise
    panel: Panel
    may_add: bool
    may_reset: bool


class FindsAdmin(ResetsAdmin):
    """Adds the page that finds a caller, and what can be done with one that has no row."""

    def get_urls(self) -> list[Any]:
        return [
            self.page_path("find/", self.find_view, "find"),
            self.page_path("find/add/", require_POST(self.add_found_view), "add_found"),
            self.page_path("find/reset/", require_POST(self.reset_found_view), "reset_found"),
            *super().get_urls(),
        ]

    @method_decorator(sensitive_post_parameters("key", "credential"))
    @method_decorator(sensitive_variables())
    def find_view(self, request: HttpRequest) -> HttpResponse:
        self._check(request)
        form = FindForm(request.POST if request.method == "POST" else None)
        _forget_secret(request)
        found = self._find(request, form) if form.is_valid() else None
        template, title = "admin/ratelimits/tenant/find.html", _("Find a caller")
        return self.page(request, template, title, form=form, found=found)

    @sensitive_variables()
    def _find(self, request: HttpRequest, form: FindForm) -> Found | None:
        host, text = request.get_host(), form.cleaned_data["key"]
        if text and (key := _key_of_row(text)):
            return self._found(request, key, "")
        if text and (key := key_of_user(text, host)):
            how = _("The user “%(user)s” is counted as “%(key)s”.")
            return self._found(request, key, how % {"user": text, "key": key})
        owner = owner_of(text or form.cleaned_data["credential"], host)
        if owner is None and text:
            return self._found(request, text, "")
        # Whatever was typed where it is shown again may be the secret.
        form.data = {}
        if owner is None or owner.is_secret:
            form.add_error("credential", _UNKNOWN if owner is None else _IS_KEY)
            return None
        how = _("This credential is of the tenant “%(key)s”, by the header %(header)s.")
        return self._found(request, owner.key, how % {"key": owner.key, "header": owner.header})

    def _found(self, request: HttpRequest, key: str, how: str) -> Found:
        tenant = Tenant.objects.filter(key=key).first()
        return Found(
            key=key,
            how=how,
            label=tenant_label(key),
            name=str(tenant) if tenant else key,
            url=self.url_of("change", tenant.pk) if tenant else "",
            warning="" if tenant or is_possible(key) else _NEVER_MADE,
            panel=panel_of(key, tenant.limits.all() if tenant else ()),
            may_add=tenant is None and self.has_add_permission(request),
            may_reset=self.has_reset_permission(request),
        )

    def add_found_view(self, request: HttpRequest) -> HttpResponse:
        """Gives a caller a row, on the default plan."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        tenant = Tenant(key=request.POST.get("key", ""))
        try:
            tenant.full_clean()
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
            return HttpResponseRedirect(self.url_of("find"))
        tenant.save()
        self.log_addition(request, tenant, [{"added": {}}])
        messages.success(request, _("“%s” has a row now.") % tenant)
        return HttpResponseRedirect(self.url_of("change", tenant.pk))

    def reset_found_view(self, request: HttpRequest) -> HttpResponse:
        """Asks for a confirmation, then resets a caller by its key."""
        self._check(request)
        key = request.POST.get("key", "")
        if not key or not self.has_reset_permission(request):
            raise PermissionDenied
        back = self.url_of("find")
        if not request.POST.get("post"):
            return self.confirm_reset(request, [key], [("key", key)], back=back)
        if self.reset_key(request, key):
            self.log_reset(request, key)
            messages.success(request, _("What “%s” had used is forgotten.") % key)
        return HttpResponseRedirect(back)

    def _check(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied


def _key_of_row(text: str) -> str | None:
    """The key of the row that has this key, or else alone has this name."""
    rows = Tenant.objects.filter(Q(key=text) | Q(name__iexact=text)).order_by("key")
    keys = list(rows.values_list("key", flat=True)[:2])
    if text in keys:
        return text
    return keys[0] if len(keys) == 1 else None


def _forget_secret(request: HttpRequest) -> None:
    """So that no report of whatever fails later can hold it."""
    posted = request.POST.copy()
    for name in ("key", "credential"):
        posted.pop(name, None)
    request.POST = posted  # type: ignore[assignment]


_UNKNOWN = gettext_lazy(
    "No resolver knows it: whoever sends it is counted by address, under the plan of anonymous "
    "callers."
)
_IS_KEY = gettext_lazy(
    "The project makes the credential itself the tenant's key. Look for it as a key, if it may "
    "be shown."
)
_NEVER_MADE = gettext_lazy("No resolver of this project makes a key like this.")
