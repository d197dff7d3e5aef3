from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.core.management.base import CommandError

T = TypeVar("T")


def until_timely(attempt: Callable[[], T | None], what: str, tries: int = 20) -> T:
    """What an attempt measured, once it could: None means that its requests came too late.

    Raises CommandError on a machine that is too busy to send them in time.
    """
    for _ in range(tries):
        result = attempt()
        if result is not None:
            return result
    raise CommandError(f"This machine is too busy for {what}: {tries} attempts came too late.")
