"""Many tenants at once, counted in the store as the limiter would, without a row for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ratelimits.algorithms import Operation
from ratelimits.catalog import Caller, tenant_key
from ratelimits.edits import shared
from ratelimits.keys import digest
from ratelimits.limiter import take
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.stores import get_store
from ratelimits.stores.base import Group, Slot

# Takes so much that no bucket is full again, and so forgotten, before it was looked at.
PART = {"per day": "100000/d", "per hour": "10000/h", "per minute": "1000/m"}
COST = 900


def limits(count: int, algorithm: str = "token_bucket") -> list[Limit]:
    named = list(PART.items())[:count]
    return [Limit(name, Rate.parse(rate), algorithm=algorithm) for name, rate in named]


def groups(limits: Sequence[Limit], count: int, start: int = 0) -> Iterator[Group]:
    """What the catalog makes for tenants with these limits."""
    # Only a take learns of the plans' present version.
    take("one:0")
    plans = shared.load(Caller("one:0"), "").versions[0]
    for number in range(start, start + count):
        key = f"org:{number}"
        subject = digest("tenant", key)
        slots = tuple(Slot(limit, subject) for limit in limits)
        yield Group(slots, (plans, (tenant_key(key), "")))


def take_once(group: Group, cost: int) -> None:
    """Raises AssertionError unless it is allowed, as all are that are measured."""
    store = get_store()
    assert store is not None
    answer = store.run(Operation.TAKE, group, [cost] * len(group.slots))
    assert answer.allowed and answer.stale is None


def fill(limits: Sequence[Limit], count: int, start: int = 0, cost: int = COST) -> None:
    """One take for each of so many tenants."""
    for group in groups(limits, count, start):
        take_once(group, cost)


def sliding_log(quota: int) -> Limit:
    return replace(limits(1)[0], rate=Rate.parse(f"{quota}/d"), algorithm="sliding_log")
