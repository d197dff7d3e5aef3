"""What pages of our own beside Django's have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from .base import M, ModelAdmin
from .viewers import Viewer


class PagesAdmin(ModelAdmin[M]):
    """Pages under a model's own, within the admin's frame."""

    def page_path(
        self, route: str, view: Callable[..., Any], name: str, of_app: bool = False
    ) -> URLPattern:
        """A page for those who are logged in to the admin: `admin:ratelimits_MODEL_NAME`.

        One of the app as a whole is `admin:ratelimits_NAME`.
        """

        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            response: HttpResponseBase = self.admin_site.admin_view(view)(request, *args, **kwargs)
            return response

        of = self.opts.app_label if of_app else f"{self.opts.app_label}_{self.opts.model_name}"
        name = f"{of}_{name}"
        return path(route, update_wrapper(wrapped, view), name=name)

    def url_of(self, name: str, *args: Any) -> str:
        """Where one of the model's pages is."""
        page = f"admin:{self.opts.app_label}_{self.opts.model_name}_{name}"
        return reverse(page, args=args, current_app=self.admin_site.name)

    def viewer(self, request: HttpRequest) -> Viewer:
        """Who looks, in this site."""
        return Viewer(request, self.admin_site)

    def viewable(self, request: HttpRequest, object_id: str) -> M:
        """The row of a page. Raises Http404, or PermissionDenied for who must not see it."""
        row = self.get_object(request, unquote(object_id))
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        if row is None:
            raise Http404
        return row

    def page(
        self,
        request: HttpRequest,
        template: str,
        title: str | Promise,
        row: Model | None = None,
        **context: Any,
    ) -> TemplateResponse:
        """A page of a row, or of the model as a whole."""
        crumbs = [
            (_("Home"), reverse("admin:index", current_app=self.admin_site.name)),
            (self.opts.app_config.verbose_name, self._app_url()),
            (capfirst(self.opts.verbose_name_plural), self.url_of("changelist")),
        ]
        if row is not None:
            crumbs.append((str(row), self.url_of("change", row.pk)))
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "crumbs": crumbs,
            "opts": self.opts,
            "media": self.media,
            **context,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, template, context)

    def _app_url(self) -> str:
        return reverse(
            "admin:app_list", args=[self.opts.app_label], current_app=self.admin_site.name
        )


def selected(request: HttpRequest) -> list[tuple[str, str]]:
    """What an action was asked for, to be posted again by a page that asks to confirm it.

    As the list sent it: to name each row would be more fields than Django takes from a form.
    """
    rows = [(ACTION_CHECKBOX_NAME, pk) for pk in request.POST.getlist(ACTION_CHECKBOX_NAME)]
    return [*rows, *((name, request.POST.get(name, "")) for name in ("action", "select_across"))]
