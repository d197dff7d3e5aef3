"""What the pages share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminTextInputWidget
from django.db import models
from django.forms.formsets import BaseFormSet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from ratelimits.models.base import LimitModel

M = TypeVar("M", bound=models.Model)

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin
    TabularInline = admin.TabularInline
else:
    # Django's own have no type parameters when the program runs.
    class ModelAdmin(admin.ModelAdmin, Generic[M]):
        pass

    class TabularInline(admin.TabularInline):
        def __class_getitem__(cls, parameters: Any) -> type:
            return cls


class TrapsAdmin(ModelAdmin[M]):
    """Warns, once everything is saved, of choices that do something else than they seem to."""

    def traps(self, obj: M) -> Iterable[str]:
        """What to warn of."""
        return ()

    def save_related(
        self,
        request: HttpRequest,
        form: forms.ModelForm[M],
        formsets: Iterable[BaseFormSet[Any]],
        change: bool,
    ) -> None:
        super().save_related(request, form, formsets, change)
        for trap in self.traps(form.instance):
            messages.warning(request, trap)


class LimitInline(TabularInline[M, Any]):
    """A row for each limit. Its text fields are as wide as what is typed there."""

    extra = 0
    widths = {"name": 16, "rate": 12, "scope": 12, "reason": 16}

    def formfield_for_dbfield(
        self, db_field: models.Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.Field | None:
        if db_field.name in self.widths:
            # Without the class that the admin's style sheet makes 20em wide.
            attrs = {"class": "ratelimits-text", "size": str(self.widths[db_field.name])}
            kwargs["widget"] = AdminTextInputWidget(attrs=attrs)
        return super().formfield_for_dbfield(db_field, request, **kwargs)


def described(limits: Iterable[LimitModel]) -> SafeString:
    """One line for each limit, in words."""
    lines = ((str(limit),) for limit in limits)
    return format_html_join(mark_safe("<br>"), "{}", lines) or mark_safe("-")
