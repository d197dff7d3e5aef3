"""memcached: compare-and-swap of one item for each caller, by the process's clock."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import blake2b

from django.core.cache.backends.base import memcache_key_warnings

from ratelimits.algorithms import Operation, State
from ratelimits.algorithms.base import ceil_div
from ratelimits.clock import microseconds
from ratelimits.exceptions import InvalidStore, PartUnavailable, StoreBusy, StoreUnavailable

from . import processes
from .base import Answer, Group
from .facts import MemcachedFacts
from .gates_values import Held, MakeAll
from .memcached_servers import Item, Servers
from .stateful import stale
from .usage_values import Make
from .values import SECOND, ValueStore, Write

# The longest pause, in seconds, after others were faster.
PAUSE = 0.001
# memcached's clock stands still while the server is paused, and then jumps: an item that was
# stored right before would be gone at once, and all of its caller's buckets full.
CATCH_UP = 10
# From here on memcached takes a number of seconds for a date.
A_MONTH = 30 * 86400


class MemcachedStore(ValueStore):
    """Counts in the servers behind a cache alias, over connections of its own.

    Exact as long as an item is not evicted: then its caller's buckets are full again. Limits
    that are shared with other callers are in items of their own. These are taken first, and
    given back if the caller's own item then turns out to have been changed by someone else; a
    process that dies in between leaves them charged for a request that was not answered.
    """

    @cached_property
    def servers(self) -> Servers:
        """Raises InvalidStore if the alias's settings make no client."""
        try:
            return Servers(self.backend, self.timeout)
        except Exception as error:
            # Whatever a client library makes of an address that it can't read.
            text = f"The cache's settings make no memcached client: {error}"
            raise InvalidStore(text) from error

    def check(self) -> None:
        """See Store.check()."""
        self.servers.clients  # noqa: B018

    def make_key(self, key: str) -> str:
        """A key with the alias's prefix and version, as memcached accepts it."""
        made = super().make_key(key)
        if any(memcache_key_warnings(made)):
            return blake2b(made.encode(), digest_size=24).hexdigest()
        return made

    def run(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        if operation in (Operation.CHARGE, Operation.REFUND) and len(self._plan(group).keys) > 1:
            return self._each(operation, group, costs, now)
        deadline = time.monotonic() + self.timeout
        while (answer := self._attempt(operation, group, costs, now)) is None:
            _pause(deadline)
        return answer

    def _each(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None
    ) -> Answer:
        """An operation that no limit refuses, on one item after the other."""
        plan = self._plan(group)
        versions = group.versions
        states: list[State | None] = [None] * len(costs)
        fitted, answer = [True] * len(costs), Answer(0, True, (), ())
        for key in plan.keys:
            places = [at for at, place in enumerate(plan.places) if place == key]
            part = Group(tuple(group.slots[at] for at in places), versions)
            answer = self.run(operation, part, [costs[at] for at in places], now)
            if answer.stale is not None:
                return answer
            # What follows belongs to what was done, whatever is edited meanwhile.
            versions = ()
            for at, state, fits in zip(places, answer.states, answer.fitted, strict=True):
                states[at], fitted[at] = state, fits
        return Answer(answer.now, True, tuple(states), tuple(fitted))

    def _attempt(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None
    ) -> Answer | None:
        """The answer; None, with nothing taken, if someone else changed an item meanwhile."""
        plan = self._plan(group)
        items = self.servers.gets([*plan.keys, *plan.versions.values()])
        other = stale(group, lambda key: _text(items.get(plan.versions[key])))
        if other is not None:
            return other
        values = {key: item.value for key, item in items.items()}
        at = microseconds() if now is None else now
        answer, writes = self._count(operation, group, costs, values, at, now is not None)
        done: list[str] = []
        for write in writes:
            if self._swap(write, items.get(write.key)):
                done.append(write.key)
            elif answer.allowed:
                self._give_back(group, costs, answer, done, now)
                return None
        return answer

    def _swap(self, write: Write, item: Item | None) -> bool:
        seconds = expiry(ceil_div(write.lifetime, SECOND) + CATCH_UP)
        if item is None:
            return self.servers.add(write.key, write.value, seconds)
        return self.servers.cas(write.key, write.value, item.token, seconds)

    def _give_back(
        self, group: Group, costs: Sequence[int], answer: Answer, keys: list[str], now: int | None
    ) -> None:
        """Refund what a take that can't be completed took from these items."""
        places = [at for at, place in enumerate(self._plan(group).places) if place in keys]
        if places:
            taken = [costs[at] if answer.fitted[at] else 0 for at in places]
            slots = tuple(group.slots[at] for at in places)
            self.run(Operation.REFUND, Group(slots), taken, now)

    def versions(self, keys: Sequence[str]) -> tuple[str, ...]:
        names = [self.make_key(key) for key in keys]
        items = self.servers.gets(names)
        return tuple(_text(items.get(name)) for name in names)

    def set_versions(self, versions: Mapping[str, str], seconds: int) -> None:
        for key, version in versions.items():
            self.servers.set(self.make_key(key), version.encode(), expiry(seconds))

    def count_processes(self, ident: str, seconds: int) -> int:
        """See Store.count_processes(). By the processes' own clocks."""
        key, deadline = self.make_key(processes.key()), time.monotonic() + self.timeout
        while True:
            item = self.servers.gets([key]).get(key)
            before = b"" if item is None else item.value
            value, count = processes.announced(before, ident, microseconds(), seconds)
            if self._swap(Write(key, value, seconds * SECOND), item):
                return count
            _pause(deadline)

    def change(self, seconds: Mapping[str, int], make: Make) -> None:
        """See usage_values.Values. Each item for itself."""
        made: dict[str, bytes] = {}
        for key, kept in seconds.items():
            try:
                made[key] = self._changed(key, kept, make, made)
            except StoreUnavailable as error:
                if not made:
                    raise
                raise PartUnavailable(str(error)) from error

    def _changed(self, key: str, seconds: int, make: Make, made: Mapping[str, bytes]) -> bytes:
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                item = self.servers.gets([key]).get(key)
            except StoreUnavailable as error:
                # Nothing was sent that changes anything, so that it may be tried again.
                raise StoreUnavailable(str(error)) from None
            value = make(key, None if item is None else item.value, made)
            if self._swap(Write(key, value, seconds * SECOND), item):
                return value
            _pause(deadline)

    def values(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """See usage_values.Values."""
        return {key: item.value for key, item in self.servers.gets(keys).items()}

    def change_together(
        self, keys: Sequence[str], also: Sequence[str], make: MakeAll, now: int | None
    ) -> None:
        """See gates_values.BookValues. One item after the other."""
        deadline, written = time.monotonic() + self.timeout, set[str]()
        while True:
            items = self.servers.gets([*keys, *also])
            values = {key: item.value for key, item in items.items()}
            made = make(Held(values, microseconds() if now is None else now, written))
            for key, (value, lifetime) in made.items():
                if not self._swap(Write(key, value, lifetime), items.get(key)):
                    break
                written.add(key)
            else:
                return
            _pause(deadline)

    def read_at(self, keys: Sequence[str]) -> Held:
        """See gates_values.BookValues."""
        return Held(self.values(keys), microseconds())

    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        for key in self._names(group, subjects):
            self.servers.delete(key)

    def recent_processes(self, seconds: int) -> int:
        """See Store.recent_processes()."""
        key = self.make_key(processes.key())
        item = self.servers.gets([key]).get(key)
        return len(processes.recent(item.value, microseconds(), seconds)) if item else 0

    @property
    def address(self) -> str:
        """See Store.address."""
        return ", ".join(self.servers.clients)

    def facts(self) -> MemcachedFacts:
        """See Store.facts()."""
        return MemcachedFacts(self.servers.stats())

    def close(self) -> None:
        """See Store.close()."""
        self.servers.close()


def expiry(seconds: int) -> int:
    """What to tell memcached, which takes more than a month for a date."""
    return seconds if seconds <= A_MONTH else seconds + int(time.time())


def _text(item: Item | None) -> str:
    return "" if item is None else item.value.decode()


def _pause(deadline: float) -> None:
    """Before the next attempt. Raises StoreBusy if there is no time left for one."""
    if time.monotonic() > deadline:
        raise StoreBusy("Too many processes count for the same caller in memcached at once.")
    # Not longer each time: whoever has waited for long would be overtaken by whoever comes.
    time.sleep(random.uniform(0, PAUSE))
