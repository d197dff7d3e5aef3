"""Which doors limit the requests to a view, and what each takes: for descriptions of APIs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.module_loading import import_string

from .middleware import RateLimitMiddleware, is_protected
from .places import is_exempt_view, places_of, said
from .rates import Rate
from .rules import Rule


class Door(NamedTuple):
    """What is taken for a request, and of which scope: units, None if each has its own cost.

    Of a throttle in place of one of DRF's the scope is the limit itself: no plan is asked.
    """

    scope: str
    cost: int | None
    is_drop_in: bool = False


def doors_of(view: Any, callback: Any, method: str, path: str) -> tuple[Door, ...]:
    """The doors of a view of DRF that may refuse a request by this method.

    `view` is an instance made for the method, `callback` the view as URLs know it. What a view
    only decides while it answers can't be seen.
    """
    if is_exempt_view(callback, method):
        return ()
    found = [*_throttles(view), *_decorators(callback, method)]
    if not found and has_middleware() and is_protected(path, callback, method):
        found.append(Door("", 1))
    return tuple(dict.fromkeys(found))


def has_middleware() -> bool:
    """Whether ours is in MIDDLEWARE."""
    kinds = (import_string(name) for name in settings.MIDDLEWARE)
    return any(isinstance(kind, type) and issubclass(kind, RateLimitMiddleware) for kind in kinds)


def _throttles(view: Any) -> Iterator[Door]:
    for throttle in view.get_throttles():
        if not getattr(throttle, "is_ratelimits_door", False):
            continue
        if hasattr(throttle, "get_cost"):
            scope = said(view, view.request, "throttle_scope") or ""
            yield Door(scope, _units(said(view, view.request, "throttle_cost")))
            continue
        # One that stands in for a class of DRF's.
        scope, rate = _scope_and_rate(throttle, view)
        if rate is not None:
            yield Door(scope, 1, is_drop_in=True)


def _scope_and_rate(throttle: Any, view: Any) -> tuple[str, Any]:
    own = getattr(throttle, "scope", None) or ""
    if not hasattr(throttle, "scope_attr"):
        return own, getattr(throttle, "rate", None)
    scope = getattr(view, throttle.scope_attr, None) or ""
    if not scope and type(throttle).allow_request.__module__ != "ratelimits.throttling.simple":
        # It goes about it in its own way, mostly by a scope that the class has.
        scope = own
    return scope, throttle.THROTTLE_RATES.get(scope)


def _units(cost: Any) -> int | None:
    if callable(cost):
        return None
    return 1 if cost is None else cost


def _decorators(callback: Any, method: str) -> Iterator[Door]:
    cls = getattr(callback, "cls", None)
    for place in (*places_of(callback, method), getattr(cls, "dispatch", None)):
        for rule in _rules(place):
            if _may_refuse(rule, method):
                yield Door(rule.scope, None if callable(rule.cost) else rule.cost)


def _rules(place: Any) -> Iterator[Rule]:
    """All rules around a view, also those below other decorators."""
    guard = getattr(place, "_ratelimits", None)
    while guard is not None:
        yield from guard.rules
        guard = getattr(guard.view, "_ratelimits", None)


def _may_refuse(rule: Rule, method: str) -> bool:
    name = "GET" if method == "HEAD" else method
    is_limit = not (isinstance(rule.rate, Rate) and rule.rate.is_unlimited)
    applies = rule.methods is None or name in rule.methods
    return applies and is_limit and rule.rate is not None and rule.mode == "enforce"
