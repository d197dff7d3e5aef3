"""A gate whose time is a number: it waits without any waiting, and remembers what it was told."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ratelimits.client.api import Api, upstream
from ratelimits.client.errors import RetryLater
from ratelimits.client.headers import Quota
from ratelimits.effects import Effect, Flow
from ratelimits.pacing.terms import Terms


class Passed(NamedTuple):
    waited: float


class Block(NamedTuple):
    at: float
    seconds: float
    by: str
    refused: bool


class Turnstile:
    """Lets calls through at once, unless it is blocked."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.now = 0.0
        self.until = 0.0
        self.entered: list[float] = []
        self.costs: list[int] = []
        self.slept: list[float] = []
        self.blocks: list[Block] = []
        self.seen: list[str] = []
        self.observed: list[list[Quota]] = []
        # What happens while somebody waits, for tests that look at that moment.
        self.while_waiting: Any = None

    def enter(self, cost: int = 1, budget: float | None = None) -> Flow[Passed]:
        wait = max(0.0, self.until - self.now)
        if wait > (self.terms.max_wait if budget is None else budget):
            raise RetryLater(wait, reason="blocked")
        if wait:
            yield Effect(self.sleep, self.asleep, (wait,))
        self.costs.append(cost)
        self.entered.append(self.now)
        return Passed(wait)

    def block(self, seconds: float, by: str, seen: str = "", *, refused: bool = True) -> Flow[None]:
        yield Effect(self._block, self._ablock, (Block(self.now, seconds, by, refused), seen))

    def observe(self, passed: Passed, quotas: list[Quota], seen: str = "") -> None:
        self.observed.append(quotas)

    def sleep(self, seconds: float) -> None:
        if self.while_waiting is not None:
            self.while_waiting()
        self.slept.append(seconds)
        self.now += seconds

    async def asleep(self, seconds: float) -> None:
        if self.while_waiting is not None:
            await self.while_waiting()
        self.slept.append(seconds)
        self.now += seconds

    def _block(self, block: Block, seen: str) -> None:
        self.blocks.append(block)
        self.seen.append(seen)
        self.until = max(self.until, self.now + block.seconds)

    async def _ablock(self, block: Block, seen: str) -> None:
        self._block(block, seen)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Turnstile:
    """The gate of all upstreams, as long as nothing else is set: 5 seconds are waited at most."""
    found = Turnstile(Terms("vendor", max_wait=5))
    monkeypatch.setattr(Api, "gate", lambda api: found)
    monkeypatch.setattr("ratelimits.client.sending.sleep", found.sleep)
    monkeypatch.setattr("ratelimits.client.sending.asleep", found.asleep)
    monkeypatch.setattr("random.random", lambda: 0.5)
    return found


@pytest.fixture
def api(gate: Turnstile) -> Api:
    return upstream("vendor", "a key")
