"""How the request for this page is seen."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from ratelimits.admin.pages import PagesAdmin
from ratelimits.admin.seen import SeenPanel, seen_panel


def look(request: HttpRequest, admin: PagesAdmin[Any]) -> SeenPanel:
    """See Panel."""
    return seen_panel(admin.viewer(request))
