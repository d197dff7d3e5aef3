"""The door for Django's views: `@ratelimit`, and what else can be said at a view."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import update_wrapper
from inspect import isawaitable
from typing import Any, TypeVar, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.utils.decorators import method_decorator

from .effects import adrive, drive
from .limits import Decision
from .publishing.responses import publish, refusal
from .requests import decision_of, publishes_elsewhere
from .rules import PLAN, Rule, checked, enter

V = TypeVar("V", bound=Callable[..., Any])


def ratelimit(
    rate: Any = PLAN,
    *,
    by: str | Callable[[Any], str | None] = "tenant",
    scope: str = "",
    cost: int | Callable[[Any], int] = 1,
    methods: Sequence[str] | None = None,
    name: str = "",
    burst: int | None = None,
    algorithm: str = "token_bucket",
    mode: str = "enforce",
) -> Callable[[V], V]:
    """Limit a view by the tenant's plan, or by a rate that is written here.

    `by` is whose bucket it is: "tenant", "ip", "user", "header:NAME" (one that your own proxy
    sets), "field:NAME" of the form or JSON body, or a callable(request); a callable that gives
    None does not limit, and what is missing counts by address. `rate` and `cost` may be
    callables of the request too; a rate of None is no limit. `name` is published; views that
    share one share the bucket. Works on functions, methods and classes, sync and async, in any
    order with other decorators. Decorators directly above each other are one take.

    Raises ValueError for what can't be counted, TypeError above a view of DRF.
    """

    def decorator(view: V) -> V:
        _refuse_drf(view)
        if isinstance(view, type):
            on_dispatch = method_decorator(
                ratelimit(
                    rate, by=by, scope=scope, cost=cost, methods=methods,
                    name=name or view.__name__, burst=burst, algorithm=algorithm, mode=mode,
                ),
                name="dispatch",
            )  # fmt: skip
            return cast(V, on_dispatch(view))
        inner, rules = _unwrapped(view)
        shown, ident = _names(inner, name, len(rules))
        allowed = None if methods is None else frozenset(method.upper() for method in methods)
        rule = Rule(rate, by, scope, cost, allowed, shown, ident, burst, algorithm, mode)
        return cast(V, _wrapped(inner, (checked(rule), *rules)))

    return decorator


def throttle_cost(cost: int | Callable[[Any, Any], int]) -> Callable[[V], V]:
    """What a request to a DRF view costs: for `@api_view` functions and viewset actions.

    A whole number of units, or a callable(request, view).
    """

    def decorator(view: V) -> V:
        # Above @api_view stands a function that made its class known.
        target: Any = getattr(view, "cls", view)
        target.throttle_cost = cost
        return view

    return decorator


def exempt(view: V) -> V:
    """No door limits this view: nothing is taken and nothing published."""
    cast(Any, view).ratelimits_exempt = True
    return view


def is_exempt_view(view: Any) -> bool:
    """Whether a view, or the class behind it, is marked by `@exempt`."""
    classes = (getattr(view, "view_class", None), getattr(view, "cls", None))
    return any(getattr(marked, "ratelimits_exempt", False) for marked in (view, *classes))


class _Guard:
    """What is remembered at a wrapper, to merge the decorators directly above it."""

    def __init__(self, wrapper: Any, view: Any, rules: tuple[Rule, ...]) -> None:
        self.wrapper, self.view, self.rules = wrapper, view, rules


def _unwrapped(view: Any) -> tuple[Any, tuple[Rule, ...]]:
    guard = getattr(view, "_ratelimits", None)
    # Another decorator in between copies the attribute, but is not the wrapper.
    if isinstance(guard, _Guard) and guard.wrapper is view:
        return guard.view, guard.rules
    return view, ()


def _names(view: Any, name: str, depth: int) -> tuple[str, str]:
    """The published name of a rule, and what its state is found by."""
    if name:
        return name, name
    function = view
    while not hasattr(function, "__qualname__"):
        function = function.func
    suffix = f"-{depth + 1}" if depth else ""
    return (
        f"{function.__name__}{suffix}",
        f"{function.__module__}.{function.__qualname__}{suffix}",
    )


def _refuse_drf(view: Any) -> None:
    if not callable(view):
        raise TypeError("Write @ratelimit(), with parentheses.")
    cls = view if isinstance(view, type) else getattr(view, "cls", None)
    if hasattr(cls, "throttle_classes"):
        raise TypeError(
            "@ratelimit can't stand above a view of Django REST framework, where nobody is "
            "authenticated yet. Use throttle_classes = [PlanRateThrottle], or put @ratelimit "
            "below @api_view, or on a method of the class."
        )


def _wrapped(view: Any, rules: tuple[Rule, ...]) -> Any:
    def inner(*args: Any, **kwargs: Any) -> Any:
        if _returns_awaitable(view):
            return ainner(*args, **kwargs)
        request = _request_in(args)
        decision = drive(enter(rules, request))
        if not decision.allowed:
            return refusal(request, decision)
        response = view(*args, **kwargs)
        if isawaitable(response):
            return _published_later(request, response)
        return _published(request, response)

    async def ainner(*args: Any, **kwargs: Any) -> Any:
        request = _request_in(args)
        decision = await adrive(enter(rules, request))
        if not decision.allowed:
            # Templates, and the project's own response, may query the database.
            return await sync_to_async(refusal, thread_sensitive=True)(request, decision)
        return _published(request, await view(*args, **kwargs))

    wrapper: Any = ainner if iscoroutinefunction(view) else inner
    update_wrapper(wrapper, view)
    if iscoroutinefunction(view):
        markcoroutinefunction(wrapper)
    wrapper._ratelimits = _Guard(wrapper, view, rules)
    return wrapper


def _returns_awaitable(view: Any) -> bool:
    """Whether it is the dispatch of an async class: a plain function that gives a coroutine."""
    bound = getattr(view, "func", view)
    owner = getattr(bound, "__self__", None)
    return bool(getattr(owner, "view_is_async", False)) and not iscoroutinefunction(view)


def _request_in(args: Sequence[Any]) -> Any:
    """The request, which on a method comes after self."""
    return next(arg for arg in args if hasattr(arg, "META"))


def _published(request: Any, response: Any) -> Any:
    decision: Decision | None = decision_of(request)
    if decision is not None and not publishes_elsewhere(request) and hasattr(response, "headers"):
        publish(response, decision)
    return response


async def _published_later(request: Any, response: Awaitable[Any]) -> Any:
    return _published(request, await response)
