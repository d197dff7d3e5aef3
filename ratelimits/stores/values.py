"""Stores that keep one value for each caller, with the states of all its limits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from django.core.cache.backends.base import BaseCache

from ratelimits.algorithms import Ask, Operation, State
from ratelimits.algorithms.base import DAY, SKEW

from .base import Answer, Group, Slot, Store
from .entries import Entry, packed, unpacked
from .gates_values import Held, MakeAll, ValueGates
from .packing import CODES
from .stateful import count
from .usage_values import Make, ValueTables

SECOND = 1_000_000
# How much longer than needed a value is kept; by far, if time stands still for the caller but
# not for the store.
MARGIN = SECOND
FROZEN_MARGIN = 601 * SECOND
# No rate takes longer than a year to refill what it refills at all.
LONGEST = 10 * 366 * DAY
# Whose bucket it is, from the most shared on.
SHARED = ("everyone", "address", "tenant")


class Write(NamedTuple):
    """A value to store under a key, and for how many microseconds it is needed."""

    key: str
    value: bytes
    lifetime: int


class Plan(NamedTuple):
    """Where a group is stored; the same from one of its calls to the next.

    `keys` are the callers' in the order in which they are taken from, the most shared first;
    `places` says for each limit which of them it is in.
    """

    versions: Mapping[str, str]
    keys: tuple[str, ...]
    places: tuple[str, ...]
    codes: tuple[int, ...]


class ValueStore(Store):
    """Base of the stores behind a cache alias that only know keys and values."""

    def __init__(self, backend: BaseCache, timeout: float) -> None:
        self.backend = backend
        self.timeout = timeout

    def make_key(self, key: str) -> str:
        """A key with the alias's prefix and version."""
        return str(self.backend.make_key(key))

    @abstractmethod
    def change(self, seconds: Mapping[str, int], make: Make) -> None:
        """See usage_values.Values."""

    @abstractmethod
    def values(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """See usage_values.Values."""

    @abstractmethod
    def change_together(
        self, keys: Sequence[str], also: Sequence[str], make: MakeAll, now: int | None
    ) -> None:
        """See gates_values.BookValues."""

    @abstractmethod
    def read_at(self, keys: Sequence[str]) -> Held:
        """See gates_values.BookValues."""

    @cached_property
    def gates(self) -> ValueGates:
        """See Store.gates."""
        return ValueGates(self)

    @cached_property
    def usage(self) -> ValueTables:
        """See Store.usage."""
        return ValueTables(self)

    def _plan(self, group: Group) -> Plan:
        plan = group.prepared.get(self)
        if not isinstance(plan, Plan):
            plan = group.prepared[self] = self._planned(group)
        return plan

    def _planned(self, group: Group) -> Plan:
        places = tuple(self.make_key(slot.subject) for slot in group.slots)
        ranks = {key: _rank(slot) for key, slot in zip(places, group.slots, strict=True)}
        return Plan(
            {key: self.make_key(key) for key, _ in group.versions},
            tuple(sorted(ranks, key=lambda key: (ranks[key], key))),
            places,
            tuple(CODES[slot.limit.algorithm] for slot in group.slots),
        )

    def _count(
        self,
        operation: Operation,
        group: Group,
        costs: Sequence[int],
        values: Mapping[str, bytes],
        now: int,
        frozen: bool,
    ) -> tuple[Answer, list[Write]]:
        """The answer from the values that were read, and what must be stored for it to hold."""
        sheet = Sheet(group, self._plan(group), values)
        margin = FROZEN_MARGIN if frozen else MARGIN
        return sheet.count(operation, group.asks(costs), now, margin)

    def _names(self, group: Group, subjects: Sequence[str]) -> list[str]:
        """The keys of the subjects and of those in the group."""
        return sorted({*map(self.make_key, subjects), *self._plan(group).keys})


def _rank(slot: Slot) -> int:
    return SHARED.index(slot.limit.per)


class Sheet:
    """The values that were read for one call, and what becomes of them."""

    def __init__(self, group: Group, plan: Plan, values: Mapping[str, bytes]) -> None:
        self.idents = group.idents
        self.plan = plan
        self.values = values
        self.entries = {key: unpacked(values.get(key)) for key in plan.keys}

    def count(
        self, operation: Operation, asks: Sequence[Ask], now: int, margin: int
    ) -> tuple[Answer, list[Write]]:
        counted = count(operation, asks, self._stored(), now)
        if operation is Operation.PEEK:
            return counted.answer, []
        for place, ident, code, ask, state in zip(
            self.plan.places, self.idents, self.plan.codes, asks, counted.states, strict=True
        ):
            expires = min(ask.algorithm.expires(state, ask.terms), now + LONGEST)
            self.entries[place][ident] = Entry(code, expires, state)
        writes = [self._write(key, now, margin) for key in self.plan.keys]
        return counted.answer, [w for w in writes if w.value != self.values.get(w.key)]

    def _stored(self) -> list[State | None]:
        stored: list[State | None] = []
        for place, ident, code in zip(self.plan.places, self.idents, self.plan.codes, strict=True):
            entry = self.entries[place].get(ident)
            # A changed algorithm starts fresh.
            stored.append(entry.state if entry is not None and entry.code == code else None)
        return stored

    def _write(self, key: str, now: int, margin: int) -> Write:
        """Entries of other calls' limits were timed by clocks that may differ from this one."""
        own = {ident for p, ident in zip(self.plan.places, self.idents, strict=True) if p == key}
        kept, lifetime = {}, 0
        for ident, entry in self.entries[key].items():
            needed = entry.expires - now + (0 if ident in own else SKEW)
            if ident in own or needed > 0:
                kept[ident] = entry
                lifetime = max(lifetime, needed)
        return Write(key, packed(kept), lifetime + margin)
