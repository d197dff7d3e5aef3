"""Whose a credential is: what the project's own resolvers make of a request that carries it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from .logs import once
from .tenants import resolvers, tenant_of

SCHEMES = ("Bearer", "Token", "Api-Key")
# A whole header, or the start of one with its scheme, as people copy them.
_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*): *(\S.*)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z-]* +\S+")


class Header(NamedTuple):
    """A field of a request, and how it is called when its value is not shown."""

    name: str
    value: str
    shown: str


class Owner(NamedTuple):
    """The tenant that a credential belongs to, and the header by which it is known.

    With `is_secret` the key is made of the credential as it is, and to be shown to nobody.
    """

    key: str
    header: str
    is_secret: bool


def headers_tried() -> list[str]:
    """In which headers a credential is looked for, without the credential."""
    return [header.shown for header in _headers("")]


@sensitive_variables()
def owner_of(credential: str, host: str) -> Owner | None:
    """The tenant whose requests carry a credential; None if no resolver knows it."""
    cleaned = credential.strip().strip("'\"").strip()
    for header in _headers(cleaned) if cleaned else ():
        for request in _requests(header, host):
            key = _asked(request)
            if key is not None:
                return Owner(key, header.shown, header.value.split()[-1] in key)
    return None


def key_of_user(text: str, host: str) -> str | None:
    """The tenant of a user, by the name to log in with or the address of mail, if it is one's."""
    users: Any = get_user_model()._default_manager
    email = get_user_model().get_email_field_name()
    names = [get_user_model().USERNAME_FIELD, f"{email}__iexact"]
    for name in names:
        user = users.filter(**{name: text}).first()
        if user is not None:
            request = _request(host)
            request.user = user
            return _asked(request)
    return None


@sensitive_variables()
def _headers(credential: str) -> Iterator[Header]:
    whole = _HEADER.fullmatch(credential)
    if whole is not None:
        yield Header(whole[1], whole[2], whole[1])
    names = [getattr(resolver, "header", "") for resolver in resolvers()]
    for name in dict.fromkeys([*filter(None, names), "X-API-Key"]):
        yield Header(name, credential, name)
    if _SCHEME.fullmatch(credential):
        yield Header("Authorization", credential, "Authorization")
    for scheme in SCHEMES:
        yield Header("Authorization", f"{scheme} {credential}", f"Authorization: {scheme}")


@sensitive_variables()
def _requests(header: Header, host: str) -> Iterator[Any]:
    """A request with a header, as DRF's views see it, if there is DRF, and as Django's do."""
    request = _request(host)
    request.META["HTTP_" + header.name.upper().replace("-", "_")] = header.value
    try:
        from rest_framework.views import APIView
    except ImportError:
        pass
    else:
        yield APIView().initialize_request(request)
    yield request


def _request(host: str) -> Any:
    request: Any = HttpRequest()
    request.method, request.path, request.path_info = "GET", "/", "/"
    request.META = {"REMOTE_ADDR": "", "HTTP_HOST": host, "REQUEST_METHOD": "GET"}
    request.user, request.session = AnonymousUser(), {}
    return request


@sensitive_variables()
def _asked(request: Any) -> str | None:
    try:
        return tenant_of(request)
    except Exception as error:
        # Wrong in this way, such as a token that DRF refuses. What it says may quote the secret.
        once.warning(f"A resolver of TENANT failed for a pasted credential: {type(error).__name__}")
        return None
