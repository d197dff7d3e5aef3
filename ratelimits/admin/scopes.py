from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ratelimits.models import ScopeCost
from ratelimits.scopes import scopes_of_limits, scopes_of_views

from .base import ModelAdmin


@admin.register(ScopeCost)
class ScopeCostAdmin(ModelAdmin[ScopeCost]):
    """What requests of a scope cost, whatever the code says."""

    fields = ["scope", "cost", "reason"]
    list_display = ["scope", "cost", "used_by", "reason"]
    search_fields = ["scope", "reason"]

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        # Once for the whole list.
        page: Any = super().get_changelist_instance(request)
        limits, views = scopes_of_limits(), scopes_of_views()
        for row in page.result_list:
            row.users = (row.scope in limits, row.scope in views)
        return page

    @admin.display(description=_("used by"))
    def used_by(self, row: Any) -> str | SafeString:
        limits, views = row.users
        if not limits and not views:
            return format_html(
                "<strong>{}</strong> {}",
                gettext("Nothing that can be seen."),
                gettext("No limit and no view names this scope; code may still take it by name."),
            )
        return ", ".join(
            name for name, uses in ((gettext("views"), views), (gettext("limits"), limits)) if uses
        )
