"""What holds for a block: with `with`, as a decorator, or in a fixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Generic, TypeVar

from django.conf import settings
from django.core.signals import setting_changed
from django.test.utils import TestContextDecorator

from ratelimits.conf import Settings, above, conf

T = TypeVar("T")


class Block(TestContextDecorator, Generic[T]):
    """Holds for a block, sync or async, a function of either kind, or each test of a class.

    One block may be used again, also within itself. `begin` puts in force what is to end with
    it, and gives what `with` gives.
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
