"""What is said at a view: on the function, on its class, or on the handler of one method."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import lru_cache
from types import FunctionType, MethodType
from typing import Any

from .requests import plain


def places_of(view: Any, method: str | None) -> Iterator[Any]:
    """Where something may be said of a view's requests, for a view as URLs know it.

    Nearest first: the handler of the method, the function below it, the view, its class.
    """
    cls = getattr(view, "cls", None) or getattr(view, "view_class", None)
    name = (method or "get").lower()
    if name == "head" and not hasattr(cls, "head"):
        name = "get"
    # Of a viewset: which action handles which method.
    actions = getattr(view, "actions", None) or {}
    handler = getattr(cls, actions.get(name, name), None)
    return (place for place in (handler, function_below(handler), view, cls) if place is not None)


def is_exempt_view(view: Any, method: str | None = None) -> bool:
    """Whether a view, or its handler of a method, is marked by `@exempt`."""
    return any(getattr(place, "ratelimits_exempt", False) for place in places_of(view, method))


def is_spared(request: Any, *places: Any) -> bool:
    """Whether the view that a request is for, or any of the places, is marked by `@exempt`."""
    if any(getattr(place, "ratelimits_exempt", False) for place in places):
        return True
    inner = plain(request)
    match = getattr(inner, "resolver_match", None)
    return match is not None and _is_exempt(match.func, inner.method)


def _is_exempt(view: Any, method: str | None) -> bool:
    try:
        return _known_exempt(view, method)
    except TypeError:
        # A view that can't be told from others that are equal to it.
        return is_exempt_view(view, method)


# What is said at a view is said when it is made.
_known_exempt = lru_cache(maxsize=1024)(is_exempt_view)


def has_door(view: Any, method: str | None) -> bool:
    """Whether a view is limited by a decorator, or by a throttle of its class."""
    cls = getattr(view, "cls", None)
    places = (*places_of(view, method), getattr(cls, "dispatch", None))
    if any("_ratelimits" in getattr(place, "__dict__", ()) for place in places):
        return True
    return any(map(_is_door, _throttles(view)))


def passes_door(view: Any, method: str | None) -> bool:
    """Whether no request gets at what is behind the door of a view without passing it."""
    cls = getattr(view, "cls", None)
    if any("_ratelimits" in getattr(place, "__dict__", ()) for place in places_of(view, method)):
        return True
    # A class or a throttle that goes about it in its own way may let requests past.
    ways = [getattr(cls, name, None) for name in ("dispatch", "initial", "check_throttles")]
    ways.append(getattr(cls, "get_throttles", None))
    doors = [throttle.allow_request for throttle in _throttles(view) if _is_door(throttle)]
    return (
        bool(doors)
        and all(getattr(way, "__module__", "") == "rest_framework.views" for way in ways)
        and all(door.__module__ == "ratelimits.throttling.plan" for door in doors)
    )


def _throttles(view: Any) -> Any:
    # An action of a viewset may have throttles of its own.
    given = getattr(view, "initkwargs", None) or {}
    cls = getattr(view, "cls", None)
    return given.get("throttle_classes", getattr(cls, "throttle_classes", None)) or ()


def _is_door(throttle: Any) -> bool:
    return getattr(throttle, "is_ratelimits_door", False)


def said(view: Any, request: Any, name: str) -> Any:
    """What is said of a request at its handler, or else at its view, an instance of a class."""
    handler = getattr(view, (plain(request).method or "").lower(), None)
    value = None if handler is None else getattr(handler, name, None)
    if value is None:
        below = function_below(handler)
        value = getattr(view if below is None else below, name, None)
        if value is None and below is not None:
            value = getattr(view, name, None)
    # A plain function as a class attribute is bound to the view when it is read.
    if isinstance(value, MethodType) and value.__self__ is view:
        return value.__func__
    return value


def function_below(handler: Any) -> Any:
    """The function below `@api_view`, which DRF keeps only in the handler's closure."""
    function = getattr(handler, "__func__", handler)
    return _in_closure(function) if isinstance(function, FunctionType) else None


@lru_cache(maxsize=1024)
def _in_closure(handler: Any) -> Any:
    if "func" not in handler.__code__.co_freevars:
        return None
    return inspect.getclosurevars(handler).nonlocals.get("func")
