"""What holds for a block: with `with`, as a decorator, or in a fixture."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager
from functools import partial, wraps
from typing import Any, Generic, TypeVar
from unittest import TestCase

from django.conf import settings
from django.core.signals import setting_changed
from django.test.utils import TestContextDecorator

from ratelimits.conf import Settings, above, conf

T = TypeVar("T")
# Where a class of tests says what holds for each of them.
BLOCKS = "_ratelimits_blocks"


class Block(TestContextDecorator, Generic[T]):
    """Holds for a block, sync or async, a function of either kind, or each test of a class.

    For a function that yields, such as a fixture, it holds until that has ended. One block may be
    used again, also within itself. `begin` puts in force what is to end with it, and gives what
    `with` gives.
    """

    def __init__(self, begin: Callable[[ExitStack], T]) -> None:
        super().__init__()
        self._begin = begin
        self._begun: list[ExitStack] = []

    def enable(self) -> T:
        with ExitStack() as stack:
            value = self._begin(stack)
            self._begun.append(stack.pop_all())
        return value

    def disable(self) -> None:
        self._begun.pop().close()

    def __enter__(self) -> T:  # type: ignore[override]
        return self.enable()

    async def __aenter__(self) -> T:
        return self.enable()

    async def __aexit__(self, *raised: object) -> None:
        self.disable()

    def decorate_class(self, cls: Any) -> Any:
        """Each of its tests, and of those of classes that are made from it."""
        if not issubclass(cls, TestCase):
            # Which is an error that Django has words for.
            return super().decorate_class(cls)
        if not any(BLOCKS in vars(base) for base in cls.__mro__):
            cls.run, cls.debug = _holding(cls.run), _holding(cls.debug)
        setattr(cls, BLOCKS, (self, *vars(cls).get(BLOCKS, ())))
        return cls

    def decorate_callable(self, func: Any) -> Any:
        if inspect.isasyncgenfunction(func):

            @wraps(func)
            async def aiterating(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
                async with self, aclosing(func(*args, **kwargs)) as values:
                    async for value in values:
                        yield value

            return aiterating
        if inspect.isgeneratorfunction(func):

            @wraps(func)
            def iterating(*args: Any, **kwargs: Any) -> Iterator[Any]:
                with self:
                    yield from func(*args, **kwargs)

            return iterating
        return super().decorate_callable(func)


def _holding(call: Callable[..., Any]) -> Callable[..., Any]:
    """What runs a test, in the blocks of its class, those of what that is made from outside.

    They begin before setUp(), whether that of a class that is made from it calls others or not.
    """

    @wraps(call)
    def holding(test: Any, *args: Any, **kwargs: Any) -> Any:
        test.setUp = partial(_begin, test, test.setUp)
        try:
            return call(test, *args, **kwargs)
        finally:
            del test.setUp

    return holding


def _begin(test: Any, set_up: Callable[[], Any]) -> Any:
    for kind in reversed(type(test).__mro__):
        for block in vars(kind).get(BLOCKS, ()):
            block.enable()
            test.addCleanup(block.disable)
    return set_up()


@contextmanager
def going_before(**values: Any) -> Iterator[None]:
    """These values go before the settings, also before those that a test overrides meanwhile."""
    above.append(values)
    conf.forget()
    try:
        yield
    finally:
        above[:] = [others for others in above if others is not values]
        conf.forget()


def announce() -> None:
    """Whoever has kept what it made of the settings forgets it: names in the store, and limits."""
    value = getattr(settings, "RATELIMITS", None) if settings.configured else None
    setting_changed.send(sender=Settings, setting="RATELIMITS", value=value, enter=True)
