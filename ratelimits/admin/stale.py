"""Forms of limits that somebody else has changed since they were opened."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

# The hidden input that travels with the form, beside those that count its rows.
SEEN = "SEEN"


class StaleFormSet:
    """Refuses to undo what it did not show, such as a raise that another operator just made.

    Django's own saves what it was opened with, whatever is there now. A form without the input,
    as programs post it, is taken as it is.
    """

    @cached_property
    def management_form(self) -> Any:
        parent: Any = super()
        form = parent.management_form
        # Now, since validation writes what was posted into these rows.
        self.rows_now = self._digest()
        form.fields[SEEN] = forms.CharField(required=False, widget=forms.HiddenInput)
        form.initial = {**form.initial, SEEN: self.rows_now}
        return form

    def clean(self) -> None:
        parent: Any = super()
        parent.clean()
        formset: Any = self
        seen = formset.data.get(f"{formset.prefix}-{SEEN}")
        if seen and seen != self.rows_now and not formset.save_as_new:
            raise ValidationError(
                _("Somebody else changed these limits meanwhile. Open the page again."),
                code="stale",
            )

    def _digest(self) -> str:
        formset: Any = self
        fields = [field for field in formset.model._meta.concrete_fields if field.editable]
        rows = [
            (row.pk, *(field.value_to_string(row) for field in fields))
            for row in formset.get_queryset()
            if row.pk
        ]
        return blake2b(repr(rows).encode(), digest_size=8).hexdigest()
