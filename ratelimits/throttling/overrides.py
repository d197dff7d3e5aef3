"""Throttles whose projects count in ways of their own, which DRF's way of counting is for."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any

from ratelimits.logs import once

COUNTED = "throttle_success"
# Where the classes are whose method counts.
OURS = "ratelimits.throttling.simple"


def counts_by_itself(throttle: Any) -> bool:
    """Whether its class lets requests pass uncounted, to count some of them later.

    So do throttles of failed logins: their `throttle_success` neither calls the one that it
    overrides nor keeps a time.
    """
    kind: Any = type(throttle)
    return _counts_by_itself(kind)


@lru_cache(maxsize=1024)
def _counts_by_itself(kind: Any) -> bool:
    for each in kind.__mro__:
        if each.__module__ == OURS:
            return False
        override = vars(each).get(COUNTED)
        names = None if override is None else _names(override)
        if names is not None and COUNTED not in names:
            return bool(names) and "history" not in names
    return False


def _names(function: Any) -> set[str]:
    """What it mentions; nothing if that can't be known."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return {"self", *code.co_names} if code is not None else set()


def has_last_word(throttle: Any) -> bool:
    """Whether its class has an `allow_request` of its own, which may let pass whom ours refuses."""
    kind: Any = type(throttle)
    return getattr(kind.allow_request, "__module__", None) != OURS


def is_usual(method: Any, usual: Any) -> bool:
    """Whether it is what DRF has, and not what somebody has put in its place since.

    So do tests that are about something else than limits, or make up what a throttle says.
    """
    return getattr(method, "__func__", None) is usual


def tell(throttle: Any) -> None:
    """Log once that its class counts as before."""
    kind = type(throttle)
    name = f"{kind.__module__}.{kind.__qualname__}"
    once.warning(
        f"{name} counts in the cache by itself, as Django REST framework does: not exactly. For "
        "counts of ratelimits, let its allow_request() and throttle_success() call those that "
        "they override."
    )
