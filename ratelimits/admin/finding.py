"""Finding a caller by its key or a credential, also one that has no row, and giving it one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from ratelimits.catalog import Caller
from ratelimits.models import Tenant
from ratelimits.tenants import is_possible

from .find_forms import POSTED_KEY, FindForm, whom
from .labels import tenant_label
from .resets import ResetsAdmin
from .standing import Panel, panel_of


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
        # Found first, so that the secret is in no frame of what may fail later.
        who = whom(form, request.get_host()) if form.is_valid() else None
        found = self._found(request, *who) if who else None
        template, title = "admin/ratelimits/tenant/find.html", _("Find a caller")
        return self.page(request, template, title, form=form, found=found)

    def _found(self, request: HttpRequest, caller: Caller, how: str) -> Found:
        key = caller.tenant
        if key is None:
            return self._found_address(request, caller)
        tenant = Tenant.objects.filter(key=key).first()
        return Found(
            key=key,
            how=how,
            label=tenant_label(key),
            name=str(tenant) if tenant else key,
            url=self.url_of("change", tenant.pk) if tenant else "",
            warning="" if tenant or is_possible(key) else _NEVER_MADE,
            panel=panel_of(key, self.viewer(request), tenant.limits.all() if tenant else ()),
            may_add=tenant is None and self.has_add_permission(request),
            may_reset=self.has_reset_permission(request),
        )

    def _found_address(self, request: HttpRequest, caller: Caller) -> Found:
        """Who is no tenant has no row, and is counted by the address."""
        return Found(
            key="",
            how=_("Callers who are not known are counted by their address, under this plan."),
            label=None,
            name=caller.address or "",
            url="",
            warning="",
            panel=panel_of(caller, self.viewer(request)),
            may_add=False,
            may_reset=False,
        )

    def add_found_view(self, request: HttpRequest) -> HttpResponse:
        """Gives a caller a row, on the default plan."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        try:
            key = POSTED_KEY.clean(request.POST.get("key"))
            Tenant(key=key).full_clean(validate_unique=False)
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
            return HttpResponseRedirect(self.url_of("find"))
        tenant, is_new = Tenant.objects.get_or_create(key=key)
        if is_new:
            self.log_addition(request, tenant, [{"added": {}}])
            messages.success(request, _("“%s” has a row now.") % tenant)
        else:
            # Another click was faster, or somebody else.
            messages.info(request, _("“%s” has a row already.") % tenant)
        return HttpResponseRedirect(self.url_of("change", tenant.pk))

    def reset_found_view(self, request: HttpRequest) -> HttpResponse:
        """Asks for a confirmation, then resets a caller by its key."""
        self._check(request)
        if not self.has_reset_permission(request):
            raise PermissionDenied
        back = self.url_of("find")
        try:
            key = POSTED_KEY.clean(request.POST.get("key"))
        except ValidationError as error:
            messages.error(request, " ".join(error.messages))
            return HttpResponseRedirect(back)
        if not request.POST.get("post"):
            return self.confirm_reset(request, [(key, key)], [("key", key)], back=back)
        if self.reset_key(request, key):
            self.log_reset(request, key)
            messages.success(request, _("What “%s” had used is forgotten.") % key)
        return HttpResponseRedirect(back)

    def _check(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied


def _forget_secret(request: HttpRequest) -> None:
    """So that no report of whatever fails later can hold it."""
    posted = request.POST.copy()
    for name in ("key", "credential"):
        posted.pop(name, None)
    request.POST = posted  # type: ignore[assignment]


_NEVER_MADE = gettext_lazy("No resolver of this project makes a key like this.")
