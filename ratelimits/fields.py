"""The model field of rates: text in the database, a Rate in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.query_utils import DeferredAttribute
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from .rates import Rate


class BadRate(str):
    """What a row holds where a rate should be: its text, which nothing can be counted by."""

    __slots__ = ()

    @property
    def reason(self) -> str:
        """Why it is not a rate, as a sentence."""
        try:
            Rate.parse(str(self))
        except ValueError as error:
            return str(error)
        return ""


if TYPE_CHECKING:
    from django.db.models.expressions import Combinable

    _CharField = models.CharField[Rate | str | Combinable, Rate | BadRate]
else:
    _CharField = models.CharField


def read_rate(value: Any) -> Any:
    """A Rate, or a BadRate for what is none. None and SQL expressions are left as they are."""
    if value is None or isinstance(value, Rate) or hasattr(value, "resolve_expression"):
        return value
    try:
        return Rate.parse(value)
    except ValueError:
        return BadRate(value)


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, Rate | BadRate | Promise) else value


class RateAttribute(DeferredAttribute):
    """Whatever is assigned, loaded or refreshed reads as a Rate, and never raises."""

    def __set__(self, instance: models.Model, value: Any) -> None:
        instance.__dict__[self.field.attname] = read_rate(value)


class RateField(_CharField):
    """A rate such as `10/5m`, kept as it was written."""

    description = _("A rate such as 10/5m")
    descriptor_class = RateAttribute

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", 50)
        super().__init__(*args, **kwargs)

    def from_db_value(self, value: str | None, *args: Any) -> Rate | BadRate | None:
        rate: Rate | BadRate | None = read_rate(value)
        return rate

    def to_python(self, value: Any) -> Any:
        """The Rate that a form or fixture means. Raises ValidationError if it means none."""
        if value in self.empty_values or isinstance(value, Rate):
            return value
        try:
            return Rate.parse(value)
        except ValueError as error:
            raise ValidationError(str(error), code="invalid") from error

    def run_validators(self, value: Any) -> None:
        # CharField's own validators measure the text.
        super().run_validators(_text(value))

    def get_prep_value(self, value: Any) -> Any:
        return _text(value)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Refuses to store what is not a rate: it would limit nobody, silently."""
        value = super().pre_save(model_instance, add)
        if isinstance(value, BadRate):
            raise ValidationError({self.name: value.reason}, code="invalid")
        return value

    def value_from_object(self, obj: models.Model) -> Any:
        # Forms compare it with what was typed, serializers write it.
        return _text(super().value_from_object(obj))
