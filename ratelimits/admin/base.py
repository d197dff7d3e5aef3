"""What the pages share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminSplitDateTime, AdminTextareaWidget
from django.db import models
from django.forms.formsets import DELETION_FIELD_NAME, BaseFormSet
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from ratelimits.models.base import RuleModel

from .stale import StaleFormSet

M = TypeVar("M", bound=models.Model)

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin
    TabularInline = admin.TabularInline
    StackedInline = admin.StackedInline
    InlineFormSet = BaseInlineFormSet[Any, Any, Any]
else:
    # Django's own have no type parameters when the program runs.
    class _Typed:
        def __class_getitem__(cls, parameters: Any) -> type:
            return cls

    class ModelAdmin(_Typed, admin.ModelAdmin):
        pass

    class TabularInline(_Typed, admin.TabularInline):
        pass

    class StackedInline(_Typed, admin.StackedInline):
        pass

    InlineFormSet = BaseInlineFormSet


class TrapsAdmin(ModelAdmin[M]):
    """Warns, once everything is saved, of choices that do something else than they seem to."""

    # Low enough to leave the limits in sight.
    formfield_overrides = {models.TextField: {"widget": AdminTextareaWidget(attrs={"rows": 3})}}

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


class LimitFormSet(StaleFormSet, InlineFormSet):
    """Rows whose boxes for deletion have a name too."""

    def add_fields(self, form: forms.Form, index: int | None) -> None:
        super().add_fields(form, index)
        delete = form.fields.get(DELETION_FIELD_NAME)
        if delete is not None:
            delete.widget.attrs["aria-label"] = str(delete.label)


def name_widgets(field: forms.Field, of_column: bool = False) -> None:
    """Names for who can't see it, where Django has heads of columns or one label for two inputs."""
    widget, label = field.widget, str(field.label)
    if isinstance(widget, AdminSplitDateTime):
        for part, name in zip(widget.widgets, (gettext("date"), gettext("time")), strict=True):
            part.attrs["aria-label"] = f"{label}: {name}"
    elif of_column:
        widget.attrs["aria-label"] = label


class LimitForm:
    """For inlines of limits: fields as wide as what is typed there, so that a row fits."""

    extra = 0
    formset: Any = LimitFormSet
    # Without the classes by which the admin's style sheet makes them twice as wide.
    attributes = {
        "name": {"class": "ratelimits-text", "size": "11"},
        "rate": {"class": "ratelimits-text", "size": "9"},
        "scope": {"class": "ratelimits-text", "size": "8"},
        "burst": {"class": "vIntegerField"},
    }

    def formfield_for_dbfield(
        self, db_field: models.Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.Field | None:
        parent: Any = super()
        field: forms.Field | None = parent.formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None:
            field.widget.attrs.update(self.attributes.get(db_field.name, {}))
            name_widgets(field, of_column=isinstance(self, admin.TabularInline))
        return field


def described(limits: Iterable[RuleModel]) -> SafeString:
    """One line for each limit, in words."""
    lines = ((str(limit),) for limit in limits)
    return format_html_join(mark_safe("<br>"), "{}", lines) or mark_safe("-")
