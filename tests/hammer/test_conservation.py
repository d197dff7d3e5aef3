"""In no stretch of time does more pass than the burst and what flowed in meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.fresh import PATIENT
from tests.processes import run_processes
from tests.servers import RedisServer
from tests.settings import redis_caches

from . import workers

pytestmark = pytest.mark.django_db(transaction=True)

BURST = 100
# Few enough for a busy machine to be always ahead of them.
PER_SECOND = 200


def worst_stretch(log: Iterable[tuple[int, int]], per_second: int) -> float:
    """The most that passed in any stretch, less what flowed in during it. One pass.

    log: times in microseconds, and costs.
    """
    admitted, worst, lowest = 0, 0.0, float("inf")
    for at, cost in sorted(log):
        # With microunits all is whole.
        inflow = at * per_second
        lowest = min(lowest, admitted * 10**6 - inflow)
        admitted += cost
        worst = max(worst, admitted * 10**6 - inflow - lowest)
    return worst / 10**6


def hammered(
    server: RedisServer, costs: list[int], seconds: float, ahead: int = 0
) -> list[tuple[int, int]]:
    """What several processes, one for each cost, were allowed."""
    arguments = (f"{PER_SECOND}/s", BURST, costs, seconds, ahead)
    settings = {"CACHES": redis_caches(server.url), "RATELIMITS": PATIENT}
    logs = run_processes(workers.logged, len(costs), *arguments, settings=settings)
    assert sum(map(bool, logs)) > 1, "more than one process had a share"
    return [(at, cost) for log in logs for at, cost in log]


def test_the_measure() -> None:
    steady = [(at * 1000, 1) for at in range(5_000)]
    assert worst_stretch(steady, 1000) == 1
    assert worst_stretch([(0, 60), *steady, (5_000_000, 41)], 1000) == 101
    assert worst_stretch([(0, 60), (10_000, 50)], 1000) == 100


def test_a_bucket_over_some_seconds(on_redis: RedisServer) -> None:
    """Never above the burst, and so hard at it that not one whole unit is left unused."""
    log = hammered(on_redis, [1, 1, 3, 7], seconds=2.5)
    assert BURST - 1 < worst_stretch(log, PER_SECOND) <= BURST
    assert sum(cost for _, cost in log) > PER_SECOND


def test_with_clocks_two_seconds_apart(on_redis: RedisServer) -> None:
    log = hammered(on_redis, [1, 1], seconds=1, ahead=2)
    assert BURST - 1 < worst_stretch(log, PER_SECOND) <= BURST
