"""Time that stands still, and goes on when a test says so."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ratelimits.stores import other_stores

from . import counts
from .blocks import Block, going_before

if TYPE_CHECKING:
    from freezegun.api import FrozenDateTimeFactory, StepTickTimeFactory, TickingDateTimeFactory

    Clock: TypeAlias = FrozenDateTimeFactory | StepTickTimeFactory | TickingDateTimeFactory


def frozen(moment: str | date | datetime | None = None) -> Block[Clock]:
    """Stop the time for a block, in which all buckets are full; by default now.

    `with frozen() as clock` gives the clock of freezegun, which has to be installed:
    `clock.tick(60)` lets a minute pass, `clock.move_to(...)` goes to a moment. Every store
    counts by it. Event loops go on by their own time.
    """
    return Block(partial(_begin, moment))


def _begin(moment: str | date | datetime | None, stack: ExitStack) -> Clock:
    # Only who freezes time needs it.
    from freezegun import freeze_time

    # Nothing that was noted by this clock is to be found by another one, nor the other way round.
    stack.enter_context(going_before(CLOCK="process"))
    stack.enter_context(other_stores())
    counts.begin(stack)
    clock = stack.enter_context(freeze_time(moment, real_asyncio=True, ignore=["_pytest.timing"]))
    stack.callback(counts.forget_noted)
    return clock
