from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from ratelimits.models import ServiceLimit

from .base import ModelAdmin


@admin.register(ServiceLimit)
class ServiceLimitAdmin(ModelAdmin[ServiceLimit]):
    """Limits that protect the service, whatever was sold."""

    fields = ["name", "rate", "burst", "per", "scope", "mode"]
    list_display = ["name", "rate_in_words", "per", "scope", "mode"]
    list_filter = ["per", "mode", "scope"]
    search_fields = ["name", "scope"]

    @admin.display(description=_("rate"), ordering="rate")
    def rate_in_words(self, limit: ServiceLimit) -> str:
        return limit.describe()
