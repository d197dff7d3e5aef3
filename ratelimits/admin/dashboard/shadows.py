"""Limits in shadow, of all plans and of the service."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from django.http import HttpRequest

from ratelimits.admin.pages import PagesAdmin
from ratelimits.admin.shadow_panel import Shadows, shadows_of
from ratelimits.admin.shadows import ShadowsAdmin
from ratelimits.models import Mode, Plan, ServiceLimit

# Rows whose limits are shown.
SHOWN = 20


def look(request: HttpRequest, admin: PagesAdmin[Any]) -> Shadows | None:
    """See Panel. None as well if nothing is in shadow."""
    return shadows_of(admin.viewer(request), islice(_pages(request, admin), SHOWN))


def _pages(request: HttpRequest, admin: PagesAdmin[Any]) -> Iterable[tuple[ShadowsAdmin[Any], Any]]:
    registry = admin.admin_site._registry
    plans = Plan.objects.filter(limits__mode=Mode.SHADOW).distinct().prefetch_related("limits")
    for model, rows in ((Plan, plans), (ServiceLimit, ServiceLimit.objects.filter(mode="shadow"))):
        page: Any = registry.get(model)
        if isinstance(page, ShadowsAdmin) and page.has_view_or_change_permission(request):
            yield from ((page, row) for row in rows)
