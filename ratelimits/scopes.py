"""Which scopes are in use: by limits, and by views as far as those can be asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from . import rows
from .places import places_of
from .rules import Rule

METHODS = ("get", "post", "put", "patch", "delete")


def scopes_of_limits() -> set[str]:
    """The scopes that limits of plans, of tenants or of the service are for."""
    alias = rows.write_alias()
    found: set[str] = set()
    for name in ("PlanLimit", "TenantLimit", "ServiceLimit"):
        limits = rows.model(name).objects.using(alias).exclude(scope="")
        found.update(limits.order_by().values_list("scope", flat=True).distinct())
    return found


def scopes_of_views() -> set[str]:
    """The scopes that views name, by `throttle_scope` or `@ratelimit(scope=...)`.

    What is taken by name inside of a view, or chosen for each request, can't be seen.
    """
    return {
        scope for view in views() for scope in _scopes(view) if isinstance(scope, str) and scope
    }


def views() -> Iterator[Any]:
    """The views of all URLs."""
    return _views(get_resolver().url_patterns)


def _views(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[Any]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _views(pattern.url_patterns)
        else:
            yield pattern.callback


def _scopes(view: Any) -> Iterator[Any]:
    # An action of a viewset may have a scope of its own.
    yield (getattr(view, "initkwargs", None) or {}).get("throttle_scope")
    methods = getattr(view, "actions", None) or METHODS
    dispatch = getattr(
        getattr(view, "cls", None) or getattr(view, "view_class", None), "dispatch", None
    )
    for place in chain((dispatch,), *(places_of(view, method) for method in methods)):
        yield getattr(place, "throttle_scope", None)
        yield from (rule.scope for rule in _rules(place))


def _rules(place: Any) -> tuple[Rule, ...]:
    guard = getattr(place, "_ratelimits", None)
    return guard.rules if guard else ()
