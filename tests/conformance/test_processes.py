"""Several processes on one bucket admit what there is, to the unit, on every store they share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ratelimits.stores.base import Store
from tests.hammer.test_conservation import worst_stretch
from tests.processes import Crowd, crowd

from .examples import ALGORITHMS
from .shared import (
    NAIVE_ONES,
    SHARED,
    add_and_incr,
    alternate,
    get_and_set,
    hammer_each,
    log_takes,
    make_cache_table,
    migrate,
    remaining,
    settings_for,
)
from .stores import Calls, limit, new_subject

# What each naive way is tried on: all but the one that is right by luck, incr of memcached.
NAIVE = [
    ("redis", get_and_set),
    ("memcached", get_and_set),
    ("postgresql", get_and_set),
    ("postgresql", add_and_incr),
]


@pytest.mark.parametrize("name", SHARED)
def test_processes_admit_exactly_what_there_is(
    name: str, start_server: Any, tmp_path: Path
) -> None:
    """All of it with the same processes, since starting them takes longer than what they do."""
    with crowd(8, settings_for(name, start_server, tmp_path)) as processes:
        if name == "postgresql":
            processes.run(migrate, count=1)
        each_algorithm_is_exact(processes)
        callers_share_what_is_everyones(processes)
        no_stretch_of_time_admits_more_than_burst_and_refill(processes)


def each_algorithm_is_exact(processes: Crowd) -> None:
    tries = [(500, 300), (60, 50), (60, 50), (60, 50)]
    described = [
        (each, [[new_subject(), f"{bucket}/w", "own", algorithm, "tenant"]])
        for (each, bucket), algorithm in zip(tries, ALGORITHMS, strict=True)
    ]
    admitted = processes.run(hammer_each, described, timeout=120)
    totals = [sum(numbers) for numbers in zip(*admitted, strict=True)]
    assert totals == [300, 50, 50, 50]


def callers_share_what_is_everyones(processes: Crowd) -> None:
    """Whoever is refused by one of the limits has taken nothing from the others."""
    everyone = [new_subject(), "150/w", "all", "token_bucket", "everyone"]
    own = [[new_subject(), "100/w", "own", "token_bucket", "tenant"] for _ in range(2)]
    described = [[limit, everyone] for limit in own]
    by_process = processes.run(alternate, 60, described, count=4, timeout=120)
    admitted = [sum(numbers) for numbers in zip(*by_process, strict=True)]
    assert sum(admitted) == 150
    assert max(admitted) <= 100
    (left,) = processes.run(remaining, described, count=1)
    assert left == [[100 - number, 0] for number in admitted]


def no_stretch_of_time_admits_more_than_burst_and_refill(processes: Crowd) -> None:
    described = [[new_subject(), "100/s", "own", "token_bucket", "tenant"]]
    logs = processes.run(log_takes, 2.0, described, count=4)
    taken = [(time, 1) for log in logs for time in log]
    assert worst_stretch(taken, 100) <= 100
    assert len(taken) > 100, "nothing was refilled, so that nothing was shown"


@pytest.mark.parametrize(("name", "naive"), NAIVE)
def test_naive_ways_admit_too_many(
    name: str, naive: Any, start_server: Any, tmp_path: Path
) -> None:
    """If these passed, the tests above would show nothing."""
    settings = settings_for(name, start_server, tmp_path)
    with crowd(NAIVE_ONES, settings) as processes:
        if name == "postgresql":
            processes.run(make_cache_table, count=1)
        assert sum(processes.run(naive, 250, 300)) > 300


def test_threads_admit_exactly_what_there_is(real_store: Store) -> None:
    subject = new_subject()

    def tries(index: int) -> int:
        calls = Calls(real_store, limit("100/w"), subject=subject)
        return sum(calls.take(at=None).allowed for _ in range(30))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(tries, range(8))) == 100
