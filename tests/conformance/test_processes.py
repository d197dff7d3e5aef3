"""Several processes on one bucket admit what there is, to the unit, on every store they share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ratelimits.stores.base import Store
from tests.hammer.test_conservation import worst_stretch
from tests.processes import run_processes

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

PROCESSES = 8
# What each naive way is tried on: all but the one that is right by luck, incr of memcached.
NAIVE = [
    ("redis", get_and_set),
    ("memcached", get_and_set),
    ("postgresql", get_and_set),
    ("postgresql", add_and_incr),
]


@pytest.fixture(params=SHARED, scope="module")
def project(
    request: pytest.FixtureRequest, start_server: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """The settings of a project whose processes share a store."""
    settings = settings_for(request.param, start_server, tmp_path_factory.mktemp("project"))
    if request.param == "postgresql":
        run_processes(migrate, 1, settings=settings)
    return settings


def test_processes_admit_exactly_what_there_is(project: dict[str, Any]) -> None:
    tries = [(500, 300), (60, 50), (60, 50), (60, 50)]
    described = [
        (each, [[new_subject(), f"{bucket}/w", "own", algorithm, "tenant"]])
        for (each, bucket), algorithm in zip(tries, ALGORITHMS, strict=True)
    ]
    admitted = run_processes(hammer_each, PROCESSES, described, settings=project, timeout=120)
    totals = [sum(numbers) for numbers in zip(*admitted, strict=True)]
    assert totals == [300, 50, 50, 50]


def test_several_callers_share_a_limit_of_everyone(project: dict[str, Any]) -> None:
    """Whoever is refused by one of the limits has taken nothing from the others."""
    everyone = [new_subject(), "150/w", "all", "token_bucket", "everyone"]
    own = [[new_subject(), "100/w", "own", "token_bucket", "tenant"] for _ in range(2)]
    described = [[limit, everyone] for limit in own]
    by_process = run_processes(alternate, 4, 60, described, settings=project, timeout=120)
    admitted = [sum(numbers) for numbers in zip(*by_process, strict=True)]
    assert sum(admitted) == 150
    assert max(admitted) <= 100
    (left,) = run_processes(remaining, 1, described, settings=project)
    assert left == [[100 - number, 0] for number in admitted]


def test_no_stretch_of_time_admits_more_than_burst_and_refill(project: dict[str, Any]) -> None:
    described = [[new_subject(), "100/s", "own", "token_bucket", "tenant"]]
    logs = run_processes(log_takes, 4, 2.0, described, settings=project)
    taken = [(time, 1) for log in logs for time in log]
    assert worst_stretch(taken, 100) <= 100
    assert len(taken) > 100, "nothing was refilled, so that nothing was shown"


@pytest.mark.parametrize(("name", "naive"), NAIVE)
def test_naive_ways_admit_too_many(
    name: str, naive: Any, start_server: Any, tmp_path: Path
) -> None:
    """If these passed, the tests above would show nothing."""
    settings = settings_for(name, start_server, tmp_path)
    if name == "postgresql":
        run_processes(make_cache_table, 1, settings=settings)
    assert sum(run_processes(naive, NAIVE_ONES, 250, 300, settings=settings)) > 300


def test_threads_admit_exactly_what_there_is(real_store: Store) -> None:
    subject = new_subject()

    def tries(index: int) -> int:
        calls = Calls(real_store, limit("100/w"), subject=subject)
        return sum(calls.take(at=None).allowed for _ in range(30))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(tries, range(8))) == 100
