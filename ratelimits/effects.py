"""One flow for sync and async: what waits is named by the flow, and done by who drives it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from inspect import isawaitable
from typing import Any, NamedTuple, TypeVar

from asgiref.sync import async_to_sync

T = TypeVar("T")


class Effect(NamedTuple):
    """A call that waits, in both of its forms."""

    plain: Callable[..., Any]
    awaited: Callable[..., Awaitable[Any]]
    args: tuple[Any, ...] = ()


Flow = Generator[Effect, Any, T]


def drive(flow: Flow[T]) -> T:
    """Run a flow to its end, in this thread."""
    try:
        effect = next(flow)
        while True:
            try:
                value = effect.plain(*effect.args)
            except Exception as error:
                effect = flow.throw(error)
            else:
                effect = flow.send(value)
    except StopIteration as end:
        result: T = end.value
        return result


async def adrive(flow: Flow[T]) -> T:
    """See drive()."""
    try:
        effect = next(flow)
        while True:
            try:
                value = await effect.awaited(*effect.args)
            except Exception as error:
                effect = flow.throw(error)
            else:
                effect = flow.send(value)
    except StopIteration as end:
        result: T = end.value
        return result


def given(value: Any) -> Any:
    """What a project's callable gave, which may be async. Not on an event loop's own thread."""
    if isinstance(value, str | int) or not isawaitable(value):
        return value
    return async_to_sync(_awaited)(value)


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value
