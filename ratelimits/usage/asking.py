"""Asking the store for people, who wait a little longer than requests do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from ratelimits.exceptions import StoreError, StoreUnavailable
from ratelimits.stores import patient_store
from ratelimits.stores.base import Store

T = TypeVar("T")

# Seconds for which nobody asks again.
AWAY_FOR = 1.0


class Away:
    """Remembers for a second that the store did not answer: a page asks several times."""

    def __init__(self) -> None:
        self.until = 0.0
        self.text = ""

    def check(self) -> None:
        if time.monotonic() < self.until:
            raise StoreUnavailable(self.text)

    def begin(self, error: StoreUnavailable) -> None:
        self.until, self.text = time.monotonic() + AWAY_FOR, str(error)

    def forget(self) -> None:
        self.until = 0.0


away = Away()


def ask(question: Callable[[Store], T]) -> T:
    """The answer of the store in force. Raises StoreUnavailable: at once, if it just did."""
    away.check()
    try:
        return question(patient_store())
    except StoreUnavailable as error:
        away.begin(error)
        raise
    except StoreError as error:
        # Something else is where it is kept. The next question may be about what is ours.
        raise StoreUnavailable(str(error)) from error
