"""Sending the signals, such that no request fails with a receiver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, NamedTuple

from django.dispatch import Signal

from .effects import Effect, Flow
from .limits import Decision, Limit, Outcome
from .logs import once
from .requests import plain
from .signals import nearly_used_up, refused, would_refuse
from .stores.base import Group, ident_of

# Buckets that are remembered as nearly used up, and for how many seconds at least.
MOST = 10_000
SECONDS = 60
MONTH = 30 * 86400


class Taken(NamedTuple):
    """A take's decision, the limits that it is about, and how it came about.

    `again` is a decision that another door has told of; `shares` as in Answer; `given_back` are
    the names of limits that got back what the request had taken of them at other doors.
    """

    decision: Decision
    group: Group = Group(())
    tenant: str | None = None
    local: bool = False
    again: bool = False
    shares: tuple[Limit, ...] = ()
    given_back: frozenset[str] = frozenset()


def is_heard() -> bool:
    """Whether anybody listens to what becomes of takes."""
    return bool(refused.receivers or would_refuse.receivers or nearly_used_up.receivers)


def tell(who: Any, taken: Taken) -> Flow[None]:
    """Send what there is to say of a take."""
    if taken.again:
        return
    decision = taken.decision
    named = {
        "decision": decision,
        "request": None if isinstance(who, str) else plain(who),
        "tenant": taken.tenant,
        "source": "local" if taken.local else "store",
    }
    if refused.receivers and not decision.allowed:
        yield _sending(refused, named)
    if would_refuse.receivers:
        shadows = tuple(o for o in decision.outcomes if not o.allowed and o.limit.is_shadow)
        if shadows:
            yield _sending(would_refuse, {**named, "outcomes": shadows})
    if nearly_used_up.receivers and decision.allowed:
        for outcome in _low(taken):
            yield _sending(nearly_used_up, {**named, "outcome": outcome})


def _sending(signal: Signal, named: dict[str, Any]) -> Effect:
    return Effect(_send, _asend, (signal, named))


def _send(signal: Signal, named: dict[str, Any]) -> None:
    _safely(lambda: signal.send_robust(sender=Decision, **named))


async def _asend(signal: Signal, named: dict[str, Any]) -> None:
    await signal.asend_robust(sender=Decision, **named)


def _safely(send: Callable[[], object]) -> None:
    try:
        send()
    except RuntimeError as error:
        # Django finds no way to call an async receiver from here.
        once.error(f"A signal can't be sent: {error}", "async receivers", error)


class Lately:
    """What was told a while ago, and need not be told again yet."""

    def __init__(self) -> None:
        self._until: dict[object, float] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._until)

    def is_due(self, key: object, seconds: int) -> bool:
        """Whether to tell it now; if so, it is told."""
        now = time.monotonic()
        with self._lock:
            if self._until.get(key, now) > now:
                return False
            self._until.pop(key, None)
            if len(self._until) >= MOST:
                del self._until[next(iter(self._until))]
            self._until[key] = now + seconds
        return True

    def forget(self) -> None:
        self._until.clear()


lately = Lately()


def _low(taken: Taken) -> Iterable[Outcome]:
    """Limits of which a take left a tenth or less, unless it was told lately."""
    slots = taken.group.slots
    subjects = {id(slot.limit): slot.subject for slot in slots}
    parts = {id(slot.limit): part for slot, part in zip(slots, taken.shares, strict=False)}
    for outcome in taken.decision.outcomes:
        limit = outcome.limit
        capacity = parts.get(id(limit), limit).capacity
        if outcome.cost and not limit.is_shadow and outcome.remaining * 10 <= capacity:
            key = subjects.get(id(limit)), ident_of(limit)
            if lately.is_due(key, max(SECONDS, limit.rate.window or MONTH)):
                yield outcome
