"""What is published, as OpenAPI describes it."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from ratelimits.conf import conf

from .problems import CONTENT_TYPE

PROBLEM = "RateLimitProblem"
# The names of the answers that refuse, by their status.
ANSWERS = {"429": "RateLimited", "503": "ReducedCapacity"}
RETRY_AFTER = "Retry-After"


def components(is_3_0: bool) -> dict[str, dict[str, Any]]:
    """Headers, the schema of a problem, and the answers that refuse, for `components`.

    Versions before 3.1 say otherwise that something may be null.
    """
    return {
        "headers": _headers(),
        "schemas": {PROBLEM: _problem(is_3_0)},
        "responses": _answers(),
    }


def headers_on_answers() -> dict[str, Any]:
    """The fields that are on every answer of a counted request."""
    return {
        name: {"$ref": f"#/components/headers/{name}"} for name in _headers() if name != RETRY_AFTER
    }


def refusals() -> dict[str, Any]:
    """The answers of an operation that refuse, by their status."""
    return {status: {"$ref": f"#/components/responses/{ANSWERS[status]}"} for status in ANSWERS}


def _answers() -> dict[str, Any]:
    texts = {
        "429": _("A limit of the caller is reached."),
        "503": _("The service can't take this request at the moment."),
    }
    return {name: _answer(texts[status]) for status, name in ANSWERS.items()}


def _answer(description: str) -> dict[str, Any]:
    retry_after = {RETRY_AFTER: {"$ref": f"#/components/headers/{RETRY_AFTER}"}}
    return {
        "description": description,
        "headers": {**retry_after, **headers_on_answers()},
        "content": {CONTENT_TYPE: {"schema": {"$ref": f"#/components/schemas/{PROBLEM}"}}},
    }


def _headers() -> dict[str, Any]:
    """Those that the setting HEADERS asks for, and Retry-After."""
    wanted = (conf.HEADERS,) if isinstance(conf.HEADERS, str) else conf.HEADERS
    found = {RETRY_AFTER: _number(_("Whole seconds until the same request passes."))}
    if "ratelimit" in wanted:
        found["RateLimit-Policy"] = _text(_("Each limit: q units per w seconds."))
        found["RateLimit"] = _text(_("Each limit now: r units are left, for the next t seconds."))
    if "ratelimit-legacy" in wanted:
        found.update(_trio("", _("Seconds until more is left of it.")))
    if "x-ratelimit" in wanted:
        found.update(_trio("X-", _("When more is left of it, in seconds since the epoch.")))
    return found


def _trio(prefix: str, reset: str) -> dict[str, Any]:
    return {
        f"{prefix}RateLimit-Limit": _number(_("The limit that is closest to exhaustion.")),
        f"{prefix}RateLimit-Remaining": _number(_("Units that are left of it.")),
        f"{prefix}RateLimit-Reset": _number(reset),
    }


def _number(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "integer", "minimum": 0}}


def _text(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


def _problem(is_3_0: bool) -> dict[str, Any]:
    """See problem_of(). Others, such as a project's exception handler, may add to it."""
    count = {"type": "integer", "minimum": 0}
    maybe: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0}
    if is_3_0:
        maybe = {**count, "nullable": True}
    properties: dict[str, Any] = {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer", "enum": [int(status) for status in ANSWERS]},
        "detail": {"type": "string"},
        "instance": {
            "type": "string",
            "description": _("A receipt, to ask about it."),
        },
        "violated-policies": {"type": "array", "items": {"type": "string"}},
        "limit": {**count, "description": _("Units per window, of a limit of the caller.")},
        "remaining": count,
        "reset": {**count, "description": _("In seconds.")},
        "retry_after": {**maybe, "description": _("In seconds; null if waiting doesn't help.")},
        "cost": {**count, "description": _("Units that this request takes.")},
        "retryable": {"type": "boolean"},
    }
    # How much the whole service can take is told to nobody.
    sometimes = ("limit", "remaining", "reset")
    required = [name for name in properties if name not in sometimes]
    description = _("Why a request was refused, and when it would pass (RFC 9457).")
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
    }
