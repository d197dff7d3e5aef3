"""What is typed to find a caller, and whom it means."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_variables

from ratelimits.addresses import counted_as
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
        label=gettext_lazy("key, name, user or address"),
        required=False,
        # Keys may have spaces around them, and pages post them as they are.
        strip=False,
        max_length=LONGEST,
        help_text=gettext_lazy(
            "A tenant's key or name, a user's name or e-mail address, or the IP address of callers "
            "that are not known."
        ),
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
        given = [bool((data.get(name) or "").strip()) for name in ("key", "credential")]
        if not self.errors and given[0] == given[1]:
            raise ValidationError(_("Fill in one of the two."), code="one")
        return data


# As it comes back from the page that has found it.
POSTED_KEY = forms.CharField(max_length=LONGEST_KEY, strip=False)


@sensitive_variables()
def whom(form: FindForm, host: str) -> tuple[Caller, str] | None:
    """The caller that was meant, and how it was found; or else the form says what is wrong."""
    typed, credential = form.cleaned_data["key"], form.cleaned_data["credential"]
    text = typed.strip()
    if text and (caller := _by_name(typed) or _by_name(text)):
        return caller, ""
    if text and (key := key_of_user(text, host)):
        how = _("The user “%(user)s” is counted as “%(key)s”.")
        return Caller(key), how % {"user": text, "key": key}
    owner = owner_of(text or credential, host)
    if owner is None and text and len(text) <= LONGEST_KEY:
        return Caller(text), ""
    # What was typed where it is shown again may be the secret.
    form.data = {}
    if owner is None or owner.is_secret:
        form.add_error("credential", _UNKNOWN if owner is None else _IS_KEY)
        return None
    how = _("This credential is of the tenant “%(key)s”, by the header %(header)s.")
    return Caller(owner.key), how % {"key": owner.key, "header": owner.header}


def _by_name(text: str) -> Caller | None:
    """The caller with this key, if anybody has it; or else the tenant of this name, or an address.

    The key comes first, since there is one of it: a caller may be called as another's key is.
    """
    if len(text) <= LONGEST_KEY and (_is_row(text) or _was_seen(text)):
        return Caller(text)
    named = list(Tenant.objects.filter(name__iexact=text).values_list("key", flat=True)[:2])
    if len(named) == 1:
        return Caller(named[0])
    address = counted_as(text)
    return Caller(None, address) if address else None


def _is_row(key: str) -> bool:
    return Tenant.objects.filter(key=key).exists()


def _was_seen(key: str) -> bool:
    """Whether somebody called by this key lately: then it is none of a user or a credential."""
    found = lately(Caller(key))
    return found is not None and found.seen


_UNKNOWN = gettext_lazy(
    "No resolver knows it: whoever sends it is counted by address, under the plan of anonymous "
    "callers."
)
_IS_KEY = gettext_lazy(
    "The project makes the credential itself the tenant's key. Look for it as a key, if it may "
    "be shown."
)
