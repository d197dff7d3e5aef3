"""The door for Django's views: `@ratelimit`, and what else can be said at a view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, TypeVar, cast

from asgiref.sync import iscoroutinefunction

from .flow import check_cost
from .rules import PLAN, Rule, checked, methods_of
from .wrapping import limited, refuse_drf

V = TypeVar("V", bound=Callable[..., Any])
BARE = "Write @ratelimit(), with parentheses."


def ratelimit(
    rate: Any = PLAN,
    *,
    by: str | Callable[[Any], Any] = "tenant",
    scope: str = "",
    cost: int | Callable[[Any], Any] = 1,
    methods: str | Sequence[str] | None = None,
    name: str = "",
    burst: int | None = None,
    algorithm: str = "token_bucket",
    mode: str = "enforce",
) -> Callable[[V], V]:
    """Limit a view by the tenant's plan, or by a rate that is written here.

    `by` is whose bucket it is: "tenant", "ip", "user", "header:NAME" (one that your own proxy
    sets), "field:NAME" of the form or JSON body in all its spellings, or a callable(request); a
    callable that gives None does not limit, and what is missing counts by address. `rate` and
    `cost` may be callables of the request too; a rate of None is no limit. `name` is published;
    views that share one share the bucket. Works on functions, methods and classes, sync and
    async, in any order with other decorators. Decorators directly above each other are one take.

    Raises ValueError for what can't be counted, TypeError above a view of DRF for what depends on
    who is authenticated there.
    """
    if isinstance(rate, type):
        raise TypeError(BARE)
    allowed = methods_of(methods)
    rule = checked(
        Rule(rate, by, scope, cost, allowed, name, burst, algorithm, mode, own_name=bool(name))
    )

    def decorator(view: V, *args: Any, **kwargs: Any) -> V:
        if args or kwargs or not callable(view):
            raise TypeError(BARE)
        if rule.may_ask_who:
            refuse_drf(view)
        if isinstance(view, type):
            return cast(V, _on_dispatch(view, decorator))
        return cast(V, limited(view, rule))

    return decorator


def throttle_cost(cost: int | Callable[[Any, Any], int]) -> Callable[[V], V]:
    """What a request to a DRF view costs: for `@api_view` functions and viewset actions.

    A whole number of units, or a callable(request, view). Raises ValueError for anything else.
    """
    if not callable(cost):
        check_cost(cost)

    def decorator(view: V) -> V:
        # Above @api_view stands a function that made its class known.
        target: Any = getattr(view, "cls", view)
        target.throttle_cost = cost
        return view

    return decorator


def exempt(view: V) -> V:
    """No door limits this view: nothing is taken and nothing published."""
    marked: Any = view
    if not isinstance(view, type):
        # Like csrf_exempt, it leaves the function as it is, for where else that is used.
        marked = update_wrapper(_passing(view), view)
    marked.ratelimits_exempt = True
    return cast(V, marked)


def _passing(view: Any) -> Any:
    def marked(*args: Any, **kwargs: Any) -> Any:
        return view(*args, **kwargs)

    async def amarked(*args: Any, **kwargs: Any) -> Any:
        return await view(*args, **kwargs)

    return amarked if iscoroutinefunction(view) else marked


def _on_dispatch(view: Any, decorator: Callable[[Any], Any]) -> Any:
    if not hasattr(view, "dispatch"):
        raise TypeError(f"{view.__name__} is not a view: it has no method dispatch.")
    view.dispatch = decorator(view.dispatch)
    return view
