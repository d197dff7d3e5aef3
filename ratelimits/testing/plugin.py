"""Fixtures for pytest, for who turns them on: no test finds what another one has counted.

Say `pytest_plugins = ["ratelimits.testing.plugin"]` in the outermost conftest.py, or call pytest
with `-p ratelimits.testing.plugin`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from .asserting import assert_limited, assert_not_limited
from .counts import fresh_counts, reset
from .freezing import frozen
from .overriding import override
from .switching import off

if TYPE_CHECKING:
    from .freezing import Clock


class RateLimits:
    """What a test asks for here holds until it ends."""

    assert_limited = staticmethod(assert_limited)
    assert_not_limited = staticmethod(assert_not_limited)
    reset = staticmethod(reset)

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def off(self) -> None:
        """See ratelimits.testing.off()."""
        self._stack.enter_context(off())

    def override(self, rate: str, **options: Any) -> None:
        """See ratelimits.testing.override()."""
        self._stack.enter_context(override(rate, **options))

    def frozen(self, moment: str | date | datetime | None = None) -> Clock:
        """See ratelimits.testing.frozen(). Gives the clock to move it by."""
        return self._stack.enter_context(frozen(moment))


@pytest.fixture(autouse=True)
def _ratelimits_apart() -> Iterator[None]:
    """No test finds what another one has counted."""
    with fresh_counts():
        yield


@pytest.fixture
def ratelimits() -> Iterator[RateLimits]:
    """Other limits, another time, or none, for a test."""
    with ExitStack() as stack:
        yield RateLimits(stack)


@pytest.fixture
def ratelimits_off() -> Iterator[None]:
    """Nobody is limited."""
    with off():
        yield
