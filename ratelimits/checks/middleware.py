"""Checks of where the middleware stands among the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.utils.module_loading import import_string

from ratelimits.conf import conf

from .base import is_on, quoted, shown

OURS = "ratelimits.middleware.RateLimitMiddleware"
CORS = "corsheaders.middleware.CorsMiddleware"
# What must not be around ours, and why.
INSIDE = {
    "django.middleware.cache.UpdateCacheMiddleware": (
        "the cache would keep one caller's numbers and send them to others"
    ),
    "django.middleware.http.ConditionalGetMiddleware": (
        "its answers of 304 Not Modified would lose the fields that tell the budget"
    ),
}


def check_middleware(**kwargs: Any) -> list[CheckMessage]:
    if not is_on():
        return []
    ours = places(OURS)
    if not ours:
        return [_not_protected()] if conf.PROTECT else []
    return [*_twice(ours), *_order(ours[0])]


def _not_protected() -> CheckMessage:
    return Error(
        f'RATELIMITS["PROTECT"] is {shown(conf.PROTECT)}, but MIDDLEWARE does not have what '
        "enforces it: nothing is limited there.",
        hint=f'Add "{OURS}" to MIDDLEWARE.',
        id="ratelimits.E020",
    )


def _twice(ours: list[int]) -> Iterator[CheckMessage]:
    if len(ours) > 1:
        yield Warning(
            f"MIDDLEWARE has RateLimitMiddleware {len(ours)} times.",
            hint=f'Keep the first "{settings.MIDDLEWARE[ours[0]]}" and remove the others.',
            id="ratelimits.W020",
        )


def _order(ours: int) -> Iterator[CheckMessage]:
    own = settings.MIDDLEWARE[ours]
    for path, why in INSIDE.items():
        for place in places(path):
            if place < ours:
                other = settings.MIDDLEWARE[place]
                yield Warning(
                    f'In MIDDLEWARE, "{own}" comes after "{other}": {why}.',
                    hint=f"Turn the order around: {quoted([own, other])}",
                    id="ratelimits.W021",
                )
    for place in places(CORS):
        if place > ours:
            other = settings.MIDDLEWARE[place]
            yield Warning(
                f'In MIDDLEWARE, "{own}" comes before "{other}": browsers could not read a '
                "refusal, which would lack the CORS fields.",
                hint=f"Turn the order around: {quoted([other, own])}",
                id="ratelimits.W022",
            )


def places(path: str) -> list[int]:
    """Where a middleware, or a class made from it, stands in MIDDLEWARE."""
    entries = enumerate(settings.MIDDLEWARE)
    return [place for place, entry in entries if entry == path or _is_made_from(entry, path)]


def _is_made_from(entry: str, path: str) -> bool:
    try:
        made, base = import_string(entry), import_string(path)
    # An entry that can't be imported is an error that Django reports by itself.
    except ImportError:
        return False
    return isinstance(made, type) and isinstance(base, type) and issubclass(made, base)
