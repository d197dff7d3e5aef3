"""Check of how the cache names its keys: one caller must have one name."""

from __future__ import annotations

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
