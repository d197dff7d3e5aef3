"""For drf-spectacular: documents which operations are limited, and how they refuse.

SPECTACULAR_SETTINGS = {
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "ratelimits.contrib.spectacular.document_rate_limits",
    ],
}
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from drf_spectacular.settings import spectacular_settings
from rest_framework.settings import api_settings

from ratelimits.doors import Door, doors_of
from ratelimits.publishing.openapi import components, headers_on_answers, refusals

EXTENSION = "x-ratelimit"
PARAMETER = re.compile(r"\{([^}]*)\}")


def document_rate_limits(
    result: dict[str, Any], generator: Any, request: Any, public: bool
) -> dict[str, Any]:
    """A hook for POSTPROCESSING_HOOKS. Operations that nothing limits stay as they are."""
    is_limited = False
    for path, _regex, method, callback in generator.endpoints:
        view = _view_of(generator, callback, path, method, request)
        operation = _operation(result["paths"], generator.coerce_path(path, method, view), method)
        doors = () if operation is None else doors_of(view, callback, method, path)
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


def _view_of(generator: Any, callback: Any, path: str, method: str, request: Any) -> Any:
    """The view as it would be for a request."""
    view = generator.create_view(callback, method)
    view.request = spectacular_settings.GET_MOCK_REQUEST(method, path, view, request)
    for name, action in (getattr(callback, "actions", None) or {}).items():
        setattr(view, name, getattr(view, action))
    return view


def _operation(paths: dict[str, Any], path: str, method: str) -> dict[str, Any] | None:
    """What documents a path, None if nothing does. Settings may have altered its name."""
    name = path if path in paths else max(_altered(paths, path), key=len, default="")
    found: dict[str, Any] | None = paths.get(name, {}).get(method.lower())
    return found


def _altered(paths: Iterable[str], path: str) -> Iterable[str]:
    """The names that settings of drf-spectacular may have made of a path."""
    inserted = spectacular_settings.SCHEMA_PATH_PREFIX_INSERT or ""
    is_trimmed = spectacular_settings.SCHEMA_PATH_PREFIX_TRIM
    parts = path.strip("/").split("/")
    for name in paths:
        own = name.removeprefix(inserted).strip("/").split("/")
        fits = len(own) == len(parts) or (is_trimmed and len(own) < len(parts))
        if fits and all(map(_is_same, parts[-len(own) :], own)):
            yield name


def _is_same(part: str, other: str) -> bool:
    """Whether two parts of paths are the same but for the names of parameters."""
    found = PARAMETER.fullmatch(part)
    if found is not None and found[1] == api_settings.VERSION_PARAM:
        return True
    return PARAMETER.sub("{}", part) == PARAMETER.sub("{}", other)


def _document(operation: dict[str, Any], doors: tuple[Door, ...]) -> None:
    texts = [operation.get("description", ""), *map(_in_words, doors)]
    operation["description"] = "\n\n".join(text for text in texts if text)
    operation[EXTENSION] = [door._asdict() for door in doors]
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
    return text + " " + _("Limits of the scope “%(scope)s” count, too.") % {"scope": door.scope}
