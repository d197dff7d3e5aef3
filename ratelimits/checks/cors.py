"""Check of what browsers let scripts of other origins read: django-cors-headers says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Warning

from ratelimits.conf import conf
from ratelimits.publishing.openapi import RETRY_AFTER, headers_on_answers

from .base import is_on, quoted
from .middleware import CORS, places


def check_exposed(**kwargs: Any) -> list[CheckMessage]:
    """Whether the fields that are published can be read by scripts of other origins."""
    if not is_on() or not (apps.is_installed("corsheaders") or places(CORS)):
        return []
    exposed = getattr(settings, "CORS_EXPOSE_HEADERS", ())
    # What is no list of names is an error that others report.
    if not (_is_list(exposed) and _is_list(conf.HEADERS)) or _is_everything(exposed):
        return []
    known = {name.lower() for name in exposed}
    published = (*headers_on_answers(), RETRY_AFTER)
    lacking = [name for name in published if name.lower() not in known]
    return [_hidden(lacking, exposed)] if lacking else []


def _is_list(names: Any) -> bool:
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    return is_list and all(isinstance(name, str) for name in names)


def _is_everything(exposed: Sequence[str]) -> bool:
    # With credentials, browsers take the star for the name of a field.
    return "*" in exposed and not getattr(settings, "CORS_ALLOW_CREDENTIALS", False)


def _hidden(lacking: Sequence[str], exposed: Sequence[str]) -> CheckMessage:
    wanted = [name for name in exposed if name != "*"] + list(lacking)
    return Warning(
        f"CORS_EXPOSE_HEADERS lacks {quoted(lacking)}: scripts of other origins can read "
        "neither their budget nor how long to wait.",
        hint=f"Say CORS_EXPOSE_HEADERS = [{quoted(wanted)}]",
        id="ratelimits.W023",
    )
