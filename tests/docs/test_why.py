"""The reasons of docs/why.md are those that the experiments and the limits themselves show."""

from __future__ import annotations

import re

from demo_project.experiments import EXPERIMENTS
from ratelimits.algorithms import Operation
from ratelimits.limits import SECOND, Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Group, Slot
from ratelimits.stores.memory import MemoryStore
from tests.docs.pages import text_of
from tests.docs.tables import rows, section

PAGE = "docs/why.md"
EDGE = 1_800_000_000 * SECOND
EDGES = "Why windows double at their edge"


def passed(algorithm: str) -> int:
    """Of 10 calls a millisecond before a second begins, and 10 more a tenth of it later."""
    limit = Limit("x", Rate(10, 1), algorithm=algorithm)
    group, store = Group((Slot(limit, "somebody"),)), MemoryStore()
    times = [EDGE - SECOND // 1000] * 10 + [EDGE + SECOND // 10] * 10
    return sum(store.run(Operation.TAKE, group, [1], at).allowed for at in times)


def test_around_an_edge() -> None:
    told = {name: int(count) for name, _, count in rows(section(PAGE, EDGES))}
    assert told == {name: passed(name.replace(" ", "_")) for name in told}
    assert len(told) == 3


def test_experiments_that_are_named_are_there() -> None:
    named = set(re.findall(r"`experiments (\w+)`", text_of(PAGE)))
    assert named == set(EXPERIMENTS)
