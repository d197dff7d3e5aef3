"""Tasks of Django's kind, which an API refuses for a while."""

from __future__ import annotations

from typing import Any

from ratelimits.client.errors import RetryLater
from ratelimits.client.tasks import parks
from tests.client.deferring import task

# How often each key is refused, and with which delay; and what came.
refusals: dict[str, tuple[int, float]] = {}
came: list[tuple[Any, ...]] = []


def called(name: str, *args: Any) -> str:
    came.append((name, *args))
    times, delay = refusals.get(name, (0, 0))
    if len(came) <= times:
        raise RetryLater(delay, "daily", "too many")
    return "done"


@task(takes_context=True, priority=7, queue_name="calls")
@parks
def push(context: Any, order: int, *, to: str) -> str:
    return called("push", order, to)


@task(takes_context=True)
@parks(max_parks=2)
def impatient(context: Any) -> str:
    return called("impatient")


@task(takes_context=True)
@parks
async def apush(context: Any, order: int) -> str:
    return called("apush", order)
