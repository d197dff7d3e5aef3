"""Checks for projects with a schema for each customer: plans and counts must not be several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning
from django.utils.functional import Promise
from django.utils.module_loading import import_string

from ratelimits.conf import conf

from .base import is_on

# Apps whose KEY_FUNCTION goes by the schema that the connection happens to be in.
BY_SCHEMA = ("django_tenants", "tenant_schemas")


def check_key_function(**kwargs: Any) -> list[CheckMessage]:
    alias = conf.CACHE if is_on() else None
    if not isinstance(alias, str) or alias not in settings.CACHES:
        return []
    if not _is_by_schema(settings.CACHES[alias].get("KEY_FUNCTION")):
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


def _is_by_schema(function: Any) -> bool:
    """Whether a function is one of those apps, by whatever name a project has it."""
    while isinstance(function, partial):
        function = function.func
    if isinstance(function, str | Promise):
        path = str(function)
        # One that can't be imported is an error of the cache's own.
        with suppress(ImportError):
            path = getattr(import_string(path), "__module__", path)
    else:
        path = getattr(function, "__module__", None) or ""
    return path.partition(".")[0] in BY_SCHEMA


def check_tenant_apps(**kwargs: Any) -> list[CheckMessage]:
    """Of django-tenants: what is in the schema of each customer."""
    if not is_on() or not any(map(_is_ours, _tenant_apps())):
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


def _tenant_apps() -> Iterator[Any]:
    yield from _listed(getattr(settings, "TENANT_APPS", ()))
    public = getattr(settings, "PUBLIC_SCHEMA_NAME", "public")
    for name, kind in _named(getattr(settings, "TENANT_TYPES", {})).items():
        if name != public:
            yield from _listed(_named(kind).get("APPS", ()))


# Projects may have settings of these names that are about something else.
def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple | set) else ()


def _named(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_ours(entry: Any) -> bool:
    """Whether an entry means this app, also by a configuration that a project made from ours."""
    name = str(entry)
    if name.partition(".")[0] == "ratelimits":
        return True
    # Whatever its module raises, it is not for this check to report.
    with suppress(Exception):
        return AppConfig.create(name).name == "ratelimits"
    return False
