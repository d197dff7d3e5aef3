"""Forgetting what tenants have used: from a tenant's page, and for several of the list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop, ngettext

from ratelimits import limiter
from ratelimits.exceptions import RateLimitError
from ratelimits.models import Tenant

from .labels import labelled
from .pages import PagesAdmin, selected

# Each is a call to the store and an entry of the history; nobody waits for ever.
MOST = 1000
# Of so many the confirmation shows the names.
SHOWN = 50
RESET = gettext_noop("Reset what it had used.")


class ResetsAdmin(PagesAdmin[Tenant]):
    """Adds the pages and the action that reset, for those who have the permission."""

    def has_reset_permission(self, request: HttpRequest) -> bool:
        user: Any = request.user
        return bool(user.has_perm(f"{self.opts.app_label}.reset_tenant"))

    def get_urls(self) -> list[Any]:
        return [
            self.page_path("<path:object_id>/reset/", self.reset_view, "reset"),
            *super().get_urls(),
        ]

    def reset_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks for a confirmation, then resets one tenant."""
        tenant = self.viewable(request, object_id)
        if not self.has_reset_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return self.confirm_reset(request, [(str(tenant), tenant.key)], row=tenant)
        if self._reset(request, [tenant]):
            messages.success(request, _("What “%s” had used is forgotten.") % tenant)
        return HttpResponseRedirect(self.url_of("change", tenant.pk))

    @admin.action(
        description=gettext_lazy("Reset what the selected tenants have used"),
        permissions=["reset"],
    )
    def reset_selected(
        self, request: HttpRequest, queryset: QuerySet[Tenant]
    ) -> HttpResponse | None:
        tenants = list(queryset[: MOST + 1])
        if len(tenants) > MOST:
            messages.error(request, _("Select at most %s tenants at once.") % MOST)
            return None
        if not request.POST.get("post"):
            names = [(str(tenant), tenant.key) for tenant in tenants]
            return self.confirm_reset(request, names, selected(request))
        done = self._reset(request, tenants)
        if done:
            text = ngettext("%s tenant was reset.", "%s tenants were reset.", done)
            messages.success(request, text % done)
        return None

    def confirm_reset(
        self,
        request: HttpRequest,
        names: Sequence[tuple[str, str]],
        hidden: Sequence[tuple[str, str]] = (),
        row: Tenant | None = None,
        back: str | None = None,
    ) -> HttpResponse:
        """The page that asks about tenants, given by name and key.

        `hidden` is posted again, with `post`, when the answer is yes.
        """
        return self.page(
            request,
            "admin/ratelimits/tenant/reset.html",
            _("Reset what was used"),
            row,
            names=[labelled(*name) for name in names[:SHOWN]],
            more=max(0, len(names) - SHOWN),
            hidden=[*hidden, ("post", "yes")],
            back=back or (self.url_of("change", row.pk) if row else self.url_of("changelist")),
        )

    def _reset(self, request: HttpRequest, tenants: Iterable[Tenant]) -> int:
        """How many were reset; stops, and says so, when the store is away."""
        done = 0
        for tenant in tenants:
            if not self.reset_key(request, tenant.key):
                break
            self.log_change(request, tenant, _(RESET))
            done += 1
        return done

    def reset_key(self, request: HttpRequest, key: str) -> bool:
        """Whether what a tenant has used is forgotten. If not, the user is told why."""
        try:
            limiter.reset(key)
        except RateLimitError:
            text = _("“%s” could not be reset: the store that holds the counts can't be reached.")
            messages.error(request, text % key)
            return False
        return True

    def log_reset(self, request: HttpRequest, key: str) -> None:
        """For a caller without a row: an entry in the history of all that its user did."""
        user: Any = request.user
        LogEntry.objects.create(
            user=user,
            content_type=ContentType.objects.get_for_model(Tenant, for_concrete_model=False),
            object_repr=key[:200],
            action_flag=CHANGE,
            change_message=_(RESET),
        )
