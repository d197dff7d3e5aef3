"""The process's own memory: exact within one process, bounded under a flood of callers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import NamedTuple

from ratelimits.algorithms import Operation, State
from ratelimits.clock import microseconds

from .base import Answer, Group, Slot, Store
from .facts import MemoryFacts
from .gates import MemoryGates
from .stateful import count, stale
from .usage import MemoryTables

# What is kept is used up in part; what is full need not be kept at all.
MOST_BUCKETS = 100_000


class Bucket(NamedTuple):
    """The state of one limit of one caller, and the time from which it may be forgotten."""

    algorithm: str
    state: State
    until: int


class MemoryStore(Store):
    """Counts in a dictionary behind a lock.

    Above `size` buckets the full ones are dropped; if all are in use, newcomers share one
    bucket for each limit, so that a flood of callers resets nobody's count.
    """

    def __init__(self, size: int = MOST_BUCKETS) -> None:
        self.size = size
        self._lock = Lock()
        self._buckets: dict[tuple[object, ...], Bucket] = {}
        self._versions: dict[str, tuple[str, int]] = {}
        self._sweep_at = 0

    def __len__(self) -> int:
        return len(self._buckets)

    def run(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        asks = group.asks(costs)
        with self._lock:
            at = microseconds() if now is None else now
            refused = stale(group, self._version)
            if refused:
                return refused
            keys = [
                self._key(slot, ident, at)
                for slot, ident in zip(group.slots, group.idents, strict=True)
            ]
            states = [self._stored(key, slot) for key, slot in zip(keys, group.slots, strict=True)]
            counted = count(operation, asks, states, at)
            if operation is not Operation.PEEK:
                for key, slot, ask, state in zip(
                    keys, group.slots, asks, counted.states, strict=True
                ):
                    until = ask.algorithm.expires(state, ask.terms)
                    self._buckets[key] = Bucket(slot.limit.algorithm, state, until)
        return counted.answer

    def _stored(self, key: tuple[object, ...], slot: Slot) -> State | None:
        found = self._buckets.get(key)
        # A changed algorithm starts fresh.
        return found.state if found and found.algorithm == slot.limit.algorithm else None

    def _key(self, slot: Slot, ident: bytes, now: int) -> tuple[object, ...]:
        key = (slot.subject, ident)
        if key in self._buckets or len(self._buckets) < self.size:
            return key
        if now >= self._sweep_at:
            self._sweep(now)
        if len(self._buckets) < self.size:
            return key
        return ("", ident, slot.limit.algorithm, slot.limit.terms)

    def _sweep(self, now: int) -> None:
        """Drop what is full again, and remember when there will be more of it."""
        self._buckets = {key: kept for key, kept in self._buckets.items() if kept.until > now}
        soonest = min((kept.until for kept in self._buckets.values()), default=now)
        self._sweep_at = max(soonest, now + 1_000_000)

    def _version(self, key: str) -> str:
        version, until = self._versions.get(key, ("", 0))
        return version if until > time.monotonic_ns() else ""

    def versions(self, keys: Sequence[str]) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._version(key) for key in keys)

    def set_versions(self, versions: Mapping[str, str], seconds: int) -> None:
        now = time.monotonic_ns()
        with self._lock:
            self._versions = {k: kept for k, kept in self._versions.items() if kept[1] > now}
            until = now + seconds * 1_000_000_000
            self._versions.update({key: (version, until) for key, version in versions.items()})

    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        names = {*subjects, *(slot.subject for slot in group.slots)}
        with self._lock:
            for key in [key for key in self._buckets if key[0] in names]:
                del self._buckets[key]

    @property
    def address(self) -> str:
        """See Store.address."""
        return "the memory of each process"

    def facts(self) -> MemoryFacts:
        """See Store.facts()."""
        return MemoryFacts(len(self), self.size)

    def lifetime(self, key: str) -> float | None:
        """See Store.lifetime()."""
        left = self._versions.get(key, ("", 0))[1] - time.monotonic_ns()
        return left / 1_000_000_000 if left > 0 else None

    def count_processes(self, ident: str, seconds: int) -> int:
        """See Store.count_processes(). Nobody shares a process's memory."""
        return 1

    @cached_property
    def usage(self) -> MemoryTables:
        """See Store.usage."""
        return MemoryTables()

    @cached_property
    def gates(self) -> MemoryGates:
        """See Store.gates."""
        return MemoryGates(self._version)

    async def arun(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        """See run(). Nothing here blocks for long enough to need a thread."""
        return self.run(operation, group, costs, now)
