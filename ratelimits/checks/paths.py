"""Rules for settings that name a callable."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from importlib import import_module
from typing import Any

from django.core.checks import CheckMessage, Error
from django.utils.module_loading import import_string

from ratelimits.tenants import is_async

from .base import meant, shown


def path(name: str, value: Any) -> Iterator[CheckMessage]:
    """A dotted path, or None."""
    if value is None:
        return
    found = yield from _found(name, value)
    if found is not None and is_async(found):
        yield Error(
            f'RATELIMITS["{name}"]: {shown(value)} is async, and its answer would not be awaited.',
            hint="Make it a plain function. Async callers run it in a thread.",
            id="ratelimits.E006",
        )


def paths(name: str, value: Any) -> Iterator[CheckMessage]:
    """A dotted path, or a list of them, which may be async."""
    for entry in value if isinstance(value, (list, tuple)) else [value]:
        yield from _found(name, entry)


def _found(name: str, value: Any) -> Generator[CheckMessage, None, Any]:
    """The callable behind a dotted path; None if there is none."""
    if callable(value):
        return value
    if not isinstance(value, str):
        yield Error(
            f'RATELIMITS["{name}"] has {shown(value)}, which is no dotted path.',
            hint=f'Write for example: "{name}": "project.limits.{name.lower()}"',
            id="ratelimits.E003",
        )
        return None
    try:
        found = import_string(value)
    # Whatever a project's module raises, the other checks are still of use.
    except Exception as error:
        yield _not_imported(name, value, error)
        return None
    if callable(found):
        return found
    yield Error(
        f'RATELIMITS["{name}"]: {shown(value)} is not callable, but {shown(found)}.',
        hint="Name a function, or another callable.",
        id="ratelimits.E005",
    )
    return None


def _not_imported(name: str, value: str, error: Exception) -> Error:
    module, _, attribute = value.rpartition(".")
    reason = str(error) if isinstance(error, ImportError) else repr(error)
    close = meant(attribute, _callables(module))
    hint = "Write the path as in an import, with dots, and see that the module can be imported."
    if close is not None:
        hint = f'Did you mean "{module}.{close}"?'
    return Error(
        f'RATELIMITS["{name}"]: {shown(value)} can\'t be imported: {reason}',
        hint=hint,
        id="ratelimits.E004",
    )


def _callables(module: str) -> list[str]:
    try:
        names = vars(import_module(module))
    # It is what can't be imported, and that was said.
    except Exception:
        return []
    return [key for key, value in names.items() if callable(value) and not key.startswith("_")]
