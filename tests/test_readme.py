"""What the README says of the algorithms is what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ratelimits.algorithms import ALGORITHMS, Operation
from ratelimits.limits import SECOND, Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Group, Slot
from ratelimits.stores.memory import MemoryStore

README = Path(__file__).parent.parent / "README.md"
QUOTA = 1000
WINDOW = 1000 * SECOND
# In the middle of the calendar, at a window's edge.
EDGE = 1_800_000 * WINDOW
SAID = {
    "the quota": range(QUOTA, QUOTA + 1),
    "the burst": range(QUOTA, QUOTA + 1),
    "nearly twice the quota": range(2 * QUOTA - 20, 2 * QUOTA),
    "the burst and the quota": range(2 * QUOTA - 1, 2 * QUOTA + 1),
    "twice the quota": range(2 * QUOTA, 2 * QUOTA + 1),
}


def table() -> dict[str, list[str]]:
    """The cells behind the name of each algorithm."""
    _, _, text = README.read_text().partition("## Which algorithm")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| `")]
    cells = [[cell.strip(" *") for cell in row] for row in rows]
    return {row[0].split("`")[1]: row[1:] for row in cells if "`" in row[0]}


def passed(algorithm: str, times: list[int]) -> list[int]:
    """The times of those of the calls that pass. Each takes one unit."""
    limit = Limit("x", Rate(QUOTA, WINDOW // SECOND), algorithm=algorithm)
    group, store = Group((Slot(limit, "somebody"),)), MemoryStore()
    return [at for at in times if store.run(Operation.TAKE, group, [1], at).allowed]


def most_in(width: int, times: list[int]) -> int:
    """The most of them that lie in any window of this width."""
    return max(sum(start <= at < start + width for at in times) for start in times)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_around_an_edge(algorithm: str) -> None:
    """As many as there may be, in the millisecond before it and the one after."""
    times = passed(algorithm, [*[EDGE - 1000] * (2 * QUOTA), *[EDGE] * (2 * QUOTA)])
    assert len(times) in SAID[table()[algorithm][0]]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_in_the_worst_window(algorithm: str) -> None:
    """All at the end of one window, and all that there may be over the next."""
    step = WINDOW // (4 * QUOTA)
    times = passed(algorithm, [*[EDGE - 1] * QUOTA, *range(EDGE, EDGE + WINDOW - 1, step)])
    assert most_in(WINDOW, times) in SAID[table()[algorithm][1]]
