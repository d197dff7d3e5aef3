"""For drf-spectacular: documents which operations are limited, and how they refuse.

SPECTACULAR_SETTINGS = {
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "ratelimits.contrib.spectacular.document_rate_limits",
    ],
}
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits.extras import lacking

try:
    from drf_spectacular import plumbing
    from drf_spectacular.drainage import warn
    from drf_spectacular.settings import spectacular_settings
except ModuleNotFoundError as error:
    raise lacking(error, "spectacular") from error

from ratelimits.doors import Door, doors_of
from ratelimits.publishing.openapi import components, headers_on_answers, refusals

EXTENSION = "x-ratelimit"
# Not all of it is typed.
_plumbing: Any = plumbing


def document_rate_limits(
    result: dict[str, Any], generator: Any, request: Any, public: bool
) -> dict[str, Any]:
    """A hook for POSTPROCESSING_HOOKS. Operations that nothing limits stay as they are."""
    # Of two operations of one name it is the last one that is in the schema.
    limited = {(name, method): doors for name, method, doors in _found(generator, request, public)}
    is_limited = False
    for (name, method), doors in limited.items():
        operation = result["paths"].get(name, {}).get(method)
        if operation is not None and doors:
            _document(operation, doors)
            is_limited = True
    if is_limited:
        is_3_0 = str(result["openapi"]).startswith("3.0")
        for kind, more in components(is_3_0).items():
            kept = result.setdefault("components", {}).setdefault(kind, {})
            for name, value in more.items():
                # What a project says itself goes first.
                kept.setdefault(name, value)
    return result


def _found(
    generator: Any, request: Any, public: bool
) -> Iterator[tuple[str, str, tuple[Door, ...]]]:
    """The name, the method and the doors of each operation.

    The generator does not tell by what name it knows a view, so this goes the way that it went.
    """
    views = [
        (_view_of(generator, callback, method), callback, path, method)
        for path, _regex, method, callback in generator.endpoints
    ]
    paths = [generator.coerce_path(path, method, view) for view, _c, path, method in views]
    prefix = _prefix(paths, [view for view, *_ in views])
    for path, (view, callback, _path, method) in zip(paths, views, strict=True):
        view.request = spectacular_settings.GET_MOCK_REQUEST(method, path, view, request)
        if public or generator.has_view_permissions(path, method, view):
            versioned = _versioned(generator, path, method, view)
            if versioned is not None and not _is_excluded(view, versioned, method):
                doors = _doors(view, callback, method, versioned)
                yield _name(versioned, prefix), method.lower(), doors


def _view_of(generator: Any, callback: Any, method: str) -> Any:
    """The view as it would be for a request."""
    view = generator.create_view(callback, method)
    for name, action in (getattr(callback, "actions", None) or {}).items():
        setattr(view, name, getattr(view, action))
    return view


def _prefix(paths: Sequence[str], views: Sequence[Any]) -> str:
    """What SCHEMA_PATH_PREFIX_TRIM takes away, as a regular expression."""
    prefix: str | None = spectacular_settings.SCHEMA_PATH_PREFIX
    if prefix is None:
        are_several = len({type(view) for view in views}) > 1
        prefix = re.escape(posixpath.commonpath(paths)) if are_several else "/"
    return prefix if prefix.startswith("^") else f"^{prefix}"


def _versioned(generator: Any, path: str, method: str, view: Any) -> str | None:
    """The path in the version that the schema is of; None if it is not in that."""
    kind = view.versioning_class
    if not kind or not _plumbing.is_versioning_supported(kind):
        return path
    version = generator.api_version or kind.default_version
    if not version:
        return None
    found: str = _plumbing.modify_for_versioning(
        generator.inspector.patterns, method, path, view, version
    )
    return found if _plumbing.operation_matches_version(view, version) else None


def _is_excluded(view: Any, path: str, method: str) -> bool:
    """By `@extend_schema(exclude=True)`, which goes by these."""
    view.schema.path, view.schema.method = path, method.upper()
    excluded: bool = view.schema.is_excluded()
    return excluded


def _name(path: str, prefix: str) -> str:
    """What settings make of a path."""
    if spectacular_settings.SCHEMA_PATH_PREFIX_TRIM:
        path = re.sub(prefix, "", path, flags=re.IGNORECASE)
    path = (spectacular_settings.SCHEMA_PATH_PREFIX_INSERT or "") + path
    path = path if path.startswith("/") else f"/{path}"
    if spectacular_settings.CAMELIZE_NAMES:
        path, _operation = _plumbing.camelize_operation(path, {"operationId": "any"})
    return path


def _doors(view: Any, callback: Any, method: str, path: str) -> tuple[Door, ...]:
    try:
        return doors_of(view, callback, method, path)
    except Exception as error:
        # A project's own get_throttles() may rely on what only a real request has.
        told = _("Its limits can't be told without a request: %s")
        warn(f"{type(view).__name__} {method} {path}: {told % repr(error)}")
        return ()


def _document(operation: dict[str, Any], doors: tuple[Door, ...]) -> None:
    texts = [operation.get("description", ""), *map(_in_words, doors)]
    operation["description"] = "\n\n".join(text for text in texts if text)
    operation[EXTENSION] = [{"scope": door.scope, "cost": door.cost} for door in doors]
    responses = operation.setdefault("responses", {})
    for answer in responses.values():
        if "$ref" not in answer:
            answer["headers"] = {**headers_on_answers(), **answer.get("headers", {})}
    for status, answer in refusals().items():
        responses.setdefault(status, answer)


def _in_words(door: Door) -> str:
    if door.cost is None:
        text = _("Rate limited: how many units a request takes depends on the request.")
    else:
        text = ngettext(
            "Rate limited: a request takes %(cost)d unit.",
            "Rate limited: a request takes %(cost)d units.",
            door.cost,
        ) % {"cost": door.cost}
    if not door.scope:
        return text
    more = (
        _("It is limited by “%(scope)s”.")
        if door.is_drop_in
        else _("Limits of the scope “%(scope)s” count, too.")
    )
    return text + " " + more % {"scope": door.scope}
