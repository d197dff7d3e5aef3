"""What is typed to find a caller, and whom it means."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_variables

from ratelimits.catalog import Caller
from ratelimits.credentials import headers_tried, key_of_user, owner_of
from ratelimits.models import Tenant

from .tenant_usage import lately

LONGEST_KEY = 255
# Of what is taken for a credential, such as a token with claims.
LONGEST = 10_000


class FindForm(forms.Form):
    """By what is known of a caller. A credential is never sent back."""

    key = forms.CharField(
        label=gettext_lazy("key, name or user"),
        required=False,
        max_length=LONGEST,
        help_text=gettext_lazy("A tenant's key or name, or a user's name or e-mail address."),
        widget=forms.TextInput(attrs={"size": "40", "autocomplete": "off"}),
    )
    credential = forms.CharField(
        label=gettext_lazy("or a credential"),
        required=False,
        max_length=LONGEST,
        widget=forms.PasswordInput(attrs={"size": "40", "autocomplete": "off"}),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        text = _(
            "An API key or a token, pasted. It is looked for as these headers: %(headers)s. "
            "Nothing keeps or shows it."
        )
        self.fields["credential"].help_text = text % {"headers": ", ".join(headers_tried())}

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not self.errors and bool(data.get("key")) == bool(data.get("credential")):
            raise ValidationError(_("Fill in one of the two."), code="one")
        return data


# As it comes back from the page that has found it.
POSTED_KEY = forms.CharField(max_length=LONGEST_KEY, strip=False)


@sensitive_variables()
def whom(form: FindForm, host: str) -> tuple[str, str] | None:
    """The key that was meant, and how it was found; or else the form says what is wrong."""
    text, credential = form.cleaned_data["key"], form.cleaned_data["credential"]
    if text and (key := _key_of_row(text)):
        return key, ""
    if text and len(text) <= LONGEST_KEY and _was_seen(text):
        return text, ""
    if text and (key := key_of_user(text, host)):
        how = _("The user “%(user)s” is counted as “%(key)s”.")
        return key, how % {"user": text, "key": key}
    owner = owner_of(text or credential, host)
    if owner is None and text and len(text) <= LONGEST_KEY:
        return text, ""
    # What was typed where it is shown again may be the secret.
    form.data = {}
    if owner is None or owner.is_secret:
        form.add_error("credential", _UNKNOWN if owner is None else _IS_KEY)
        return None
    how = _("This credential is of the tenant “%(key)s”, by the header %(header)s.")
    return owner.key, how % {"key": owner.key, "header": owner.header}


def _was_seen(key: str) -> bool:
    """Whether somebody called by this key lately: then it is none of a user or a credential."""
    found = lately(Caller(key))
    return found is not None and found.seen


def _key_of_row(text: str) -> str | None:
    """The key of the row that has this key, or else alone has this name."""
    rows = Tenant.objects.filter(Q(key=text) | Q(name__iexact=text)).order_by("key")
    keys = list(rows.values_list("key", flat=True)[:2])
    if text in keys:
        return text
    return keys[0] if len(keys) == 1 else None


_UNKNOWN = gettext_lazy(
    "No resolver knows it: whoever sends it is counted by address, under the plan of anonymous "
    "callers."
)
_IS_KEY = gettext_lazy(
    "The project makes the credential itself the tenant's key. Look for it as a key, if it may "
    "be shown."
)
