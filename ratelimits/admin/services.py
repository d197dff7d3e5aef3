from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from ratelimits.models import ServiceLimit

from .shadows import ShadowsAdmin


class ScopeFilter(admin.AllValuesFieldListFilter):
    """By scope, where the empty one has a name."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield {**choice, "display": choice["display"] or _("all requests")}


@admin.register(ServiceLimit)
class ServiceLimitAdmin(ShadowsAdmin[ServiceLimit]):
    """Limits that protect the service, whatever was sold."""

    change_form_template = "admin/ratelimits/servicelimit/change_form.html"
    fields = ["name", "rate", "burst", "per", "scope", "mode"]
    list_display = ["name", "rate_in_words", "per", "scope", "mode"]
    list_filter = ["per", "mode", ("scope", ScopeFilter)]
    search_fields = ["name", "scope"]

    class Media:
        css = {"all": ["ratelimits/tenant.css", "ratelimits/shadows.css"]}

    def limits_of(self, row: ServiceLimit) -> Iterable[ServiceLimit]:
        return [row]

    @admin.display(description=_("rate"), ordering="rate")
    def rate_in_words(self, limit: ServiceLimit) -> str:
        return limit.describe()
