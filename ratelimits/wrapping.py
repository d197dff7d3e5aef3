"""How a limit gets around a view, whatever kind of callable that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import update_wrapper
from inspect import isawaitable
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async

from .effects import adrive, drive
from .entering import enter
from .naming import name_of
from .places import is_spared
from .publishing.responses import publish, refusal
from .requests import counted, decision_of, publishes_elsewhere
from .rules import Rule

ABOVE_DRF = (
    "@ratelimit can't stand above a view of Django REST framework, where nobody is authenticated "
    "yet, except by address, header or field. Use throttle_classes = [PlanRateThrottle], or put "
    "@ratelimit below @api_view, or on a method of the class."
)


class Guard:
    """The limits around a view, at the wrapper that keeps them.

    `depth` counts all limits around the view, also those below other decorators.
    """

    def __init__(self, view: Any, rules: tuple[Rule, ...], depth: int) -> None:
        self.view, self.rules, self.depth = view, rules, depth
        self.wrapper: Any = None
        self._named: dict[type | None, tuple[Rule, ...]] = {}

    def called_with(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        """The request, and the object that a method is called on, None for a function."""
        bound = getattr(getattr(self.view, "func", self.view), "__self__", None)
        request = kwargs.get("request")
        for place, argument in enumerate(args[:2]):
            if hasattr(argument, "META"):
                return argument, args[0] if place else bound
        if not hasattr(request, "META"):
            raise TypeError(f"{self.view!r} has a @ratelimit, but was called without a request.")
        return request, args[0] if args else bound

    def is_spared(self, request: Any, owner: Any) -> bool:
        return is_spared(request, self.wrapper, owner)

    def rules_for(self, owner: Any) -> tuple[Rule, ...]:
        """The limits, as they are called at the class of a view, or at a function."""
        kind = None if owner is None else type(owner)
        if kind not in self._named:
            is_above = getattr(self.view, "__name__", "") == "dispatch"
            if is_above and any(rule.may_ask_who for rule in self.rules):
                refuse_drf(kind)
            name = name_of(self.view, kind)
            self._named[kind] = tuple(rule.named(name) for rule in self.rules)
        return self._named[kind]


def limited(view: Any, rule: Rule) -> Any:
    """The view with one more limit around it."""
    below = getattr(view, "_ratelimits", None)
    depth = below.depth if below else 0
    rules: tuple[Rule, ...] = (replace(rule, depth=depth),)
    # Another decorator in between copies the attribute, but is not the wrapper.
    if below and below.wrapper is view:
        view, rules = below.view, (*rules, *below.rules)
    guard = Guard(view, rules, depth + 1)
    wrapper = guard.wrapper = _awaiting(guard) if iscoroutinefunction(view) else _plain(guard)
    update_wrapper(wrapper, view)
    wrapper._ratelimits = guard
    return wrapper


def refuse_drf(view: Any) -> None:
    """Raises TypeError for a view of DRF, or the class of one."""
    cls = view if isinstance(view, type) else getattr(view, "cls", None)
    if hasattr(cls, "throttle_classes"):
        raise TypeError(ABOVE_DRF)


def _plain(guard: Guard) -> Any:
    awaiting = _awaiting(guard)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        request, owner = guard.called_with(args, kwargs)
        if getattr(owner, "view_is_async", False):
            # The dispatch of an async class: a plain function that gives a coroutine.
            return awaiting(*args, **kwargs)
        if guard.is_spared(request, owner):
            return guard.view(*args, **kwargs)
        decision = drive(enter(guard.rules_for(owner), request))
        if not decision.allowed:
            return refusal(request, decision)
        return _published(request, guard.view(*args, **kwargs))

    return wrapper


def _awaiting(guard: Guard) -> Any:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        request, owner = guard.called_with(args, kwargs)
        if guard.is_spared(request, owner):
            return await _response(guard.view(*args, **kwargs))
        decision = await adrive(enter(guard.rules_for(owner), request, is_async=True))
        if not decision.allowed:
            # Templates, and the project's own response, may query the database.
            return await sync_to_async(refusal, thread_sensitive=True)(request, decision)
        return _published(request, await _response(guard.view(*args, **kwargs)))

    return wrapper


async def _response(made: Any) -> Any:
    return await made if isawaitable(made) else made


def _published(request: Any, response: Any) -> Any:
    counted(request).keep()
    decision = decision_of(request)
    if decision is not None and not publishes_elsewhere(request) and hasattr(response, "headers"):
        publish(response, decision)
    return response
