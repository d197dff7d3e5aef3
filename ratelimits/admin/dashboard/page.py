from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from ratelimits.admin.pages import PagesAdmin
from ratelimits.models import Tenant

from . import busiest, charts, health, mode, receipt, refusing, seen, shadows
from .panels import Panel, shown

FOLDER = "admin/ratelimits/dashboard"
PANELS = (
    Panel(f"{FOLDER}/health.html", health.look),
    Panel(f"{FOLDER}/mode.html", mode.look),
    Panel(f"{FOLDER}/refusing.html", refusing.look),
    Panel(f"{FOLDER}/receipt.html", receipt.look),
    Panel(f"{FOLDER}/charts.html", charts.look),
    Panel(f"{FOLDER}/busiest.html", busiest.look),
    Panel(f"{FOLDER}/shadows.html", shadows.look),
    Panel(f"{FOLDER}/seen.html", seen.look),
)


class DashboardAdmin(PagesAdmin[Tenant]):
    """Adds the page `admin:ratelimits_dashboard`, for those who may see tenants."""

    def get_urls(self) -> list[Any]:
        page = self.page_path("dashboard/", self.dashboard_view, "dashboard", of_app=True)
        return [page, *super().get_urls()]

    def dashboard_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        panels = shown(PANELS, request, self)
        return self.page(request, f"{FOLDER}/page.html", _("Dashboard"), panels=panels)
