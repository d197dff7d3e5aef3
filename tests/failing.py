"""A store that fails as told, over a memory that several processes' worth of guards can share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from ratelimits.algorithms import Operation
from ratelimits.clock import microseconds
from ratelimits.counting import outcomes_of
from ratelimits.exceptions import RateLimitError, StoreUnavailable
from ratelimits.stores import breaker, charging
from ratelimits.stores.base import Answer, Group, Slot, Store
from ratelimits.stores.guarded import PROBE, GuardedStore
from ratelimits.stores.memory import MemoryStore
from tests.waiting import wait_until


def refused() -> StoreUnavailable:
    """Nothing was sent."""
    return caused(ConnectionRefusedError("[Errno 111] Connection refused"))


def timed_out() -> StoreUnavailable:
    """Sent, and not answered."""
    return caused(TimeoutError("timed out"))


def caused(cause: Exception, error: StoreUnavailable | None = None) -> StoreUnavailable:
    error = error or StoreUnavailable(str(cause))
    error.__cause__ = cause
    return error


class FailingStore(Store):
    """`fault` gives what calls fail with; with `does` they do what they are asked even so.

    `script` comes first: what the next charges fail with, None for those that do not, and not
    those of probes.
    `ahead` is how much its clock is ahead of the process's, in microseconds.
    """

    def __init__(self, ahead: int = 0) -> None:
        self.memory = MemoryStore()
        self.fault: Callable[[], RateLimitError] | None = None
        self.does = False
        self.script: list[Callable[[], RateLimitError] | None] = []
        self.ahead = ahead
        self.charged: list[int] = []

    def run(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        at = microseconds() + self.ahead if now is None else now
        charges = operation is Operation.CHARGE and group.slots[0] is not PROBE
        scripted = bool(self.script) and charges
        fault = self.script.pop(0) if scripted else self.fault
        if fault is None or self.does:
            answer = self.memory.run(operation, group, costs, at)
            if charges:
                self.charged += costs
        if fault is not None:
            raise fault()
        return answer

    def versions(self, keys: Sequence[str]) -> tuple[str, ...]:
        if self.fault is not None:
            raise self.fault()
        return self.memory.versions(keys)

    def set_versions(self, versions: Mapping[str, str], seconds: int) -> None:
        self.memory.set_versions(versions, seconds)

    def count_processes(self, ident: str, seconds: int) -> int:
        return 1

    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        if self.fault is not None:
            raise self.fault()
        self.memory.reset(group, subjects)

    def left(self, *slots: Slot) -> list[int]:
        """What remains of each limit, whatever is wrong."""
        group, costs = Group(slots), [0] * len(slots)
        answer = self.memory.run(Operation.PEEK, group, costs, microseconds() + self.ahead)
        return [o.remaining for o in outcomes_of(Operation.PEEK, group, costs, answer)]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store that is back is found back, and charged, without much waiting."""
    monkeypatch.setattr(breaker, "PROBE_EVERY", 0.02)
    monkeypatch.setattr(charging, "PAUSE", 0.01)
    yield


def is_settled(guarded: Any) -> bool:
    """Whether the store is back, and was charged with everything."""
    return not guarded.breaker.is_open and not guarded._local().subjects()


def come_back(store: FailingStore, *guards: GuardedStore) -> None:
    """The store answers again, and all have noticed."""
    store.fault = None
    for guarded in guards:
        wait_until(lambda guarded=guarded: is_settled(guarded))  # type: ignore[misc]
