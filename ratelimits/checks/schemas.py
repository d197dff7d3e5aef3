"""Checks for projects with a schema for each customer: plans and counts must not be several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning

from ratelimits.conf import conf

from .base import is_on

# Apps whose KEY_FUNCTION goes by the schema that the connection happens to be in.
BY_SCHEMA = ("django_tenants", "tenant_schemas")


def check_key_function(**kwargs: Any) -> list[CheckMessage]:
    alias = conf.CACHE if is_on() else None
    if not isinstance(alias, str) or alias not in settings.CACHES:
        return []
    function = settings.CACHES[alias].get("KEY_FUNCTION") or ""
    path = function if isinstance(function, str) else getattr(function, "__module__", "")
    if path.partition(".")[0] not in BY_SCHEMA:
        return []
    name = "ratelimits" if alias == "default" else alias
    return [
        Warning(
            f'The cache "{alias}" of RATELIMITS["CACHE"] names keys by the schema of the moment: '
            "counts would differ from schema to schema, and an edit made in one of them would not "
            "act in the others.",
            hint="Give the limits an alias that does not:\n"
            f'CACHES["{name}"] = {{**CACHES["{alias}"], "KEY_FUNCTION": None}}\n'
            f'and in RATELIMITS: "CACHE": "{name}"',
            id="ratelimits.W014",
        )
    ]


def check_tenant_apps(**kwargs: Any) -> list[CheckMessage]:
    """Of django-tenants: what is in the schema of each customer."""
    if not is_on() or not any(app.partition(".")[0] == "ratelimits" for app in _tenant_apps()):
        return []
    return [
        Warning(
            "Each customer's schema has plans of its own, but a process keeps them as one: "
            "the plans of whoever calls first are everybody's.",
            hint='Take "ratelimits" out of what is installed for customers (TENANT_APPS, or '
            "TENANT_TYPES), and keep it in SHARED_APPS.",
            id="ratelimits.W033",
        )
    ]


def _tenant_apps() -> Iterator[str]:
    yield from getattr(settings, "TENANT_APPS", ())
    public = getattr(settings, "PUBLIC_SCHEMA_NAME", "public")
    for name, kind in getattr(settings, "TENANT_TYPES", {}).items():
        if name != public:
            yield from kind.get("APPS", ())
