"""Who looks at a page, and in which admin site: they decide what the page can link to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True)
class Viewer:
    """Of a site that may lack some of our models, a user who may not see all that it has."""

    request: HttpRequest
    site: AdminSite

    def page_of(self, row: Model) -> str:
        """Where the page of a row is; empty without one that this user may see."""
        if not self._may_see(type(row), row):
            return ""
        return self._url(type(row), "change", quote(row.pk))

    def list_of(self, model: type[Model]) -> str:
        """Where the list of a model's rows is; empty without one that this user may see."""
        return self._url(model, "changelist") if self._may_see(model) else ""

    def _may_see(self, model: type[Model], row: Model | None = None) -> bool:
        pages: Any = self.site._registry.get(model)
        return pages is not None and pages.has_view_or_change_permission(self.request, row)

    def _url(self, model: type[Model], page: str, *parts: Any) -> str:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
        return reverse(name, args=parts, current_app=self.site.name)
