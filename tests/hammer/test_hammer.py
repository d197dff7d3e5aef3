"""Several real processes on one bucket admit exactly what there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ratelimits.models import Plan
from tests.conformance.shared import NAIVE_ONES
from tests.fresh import PATIENT
from tests.processes import run_processes
from tests.servers import RedisServer
from tests.settings import redis_caches

from . import workers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hammer(on_redis: RedisServer) -> Callable[..., list[Any]]:
    """Runs a worker in several processes on the same Redis and database."""
    Plan.objects.create(slug="p", name="P", is_default=True).limits.create(name="n", rate="100/h")
    settings = {"CACHES": redis_caches(on_redis.url), "RATELIMITS": PATIENT}

    def run(worker: Callable[..., Any], processes: int, *args: Any) -> list[Any]:
        return run_processes(worker, processes, *args, settings=settings)

    return run


def test_processes(hammer: Callable[..., list[int]]) -> None:
    """4,000 tries on 100."""
    assert sum(hammer(workers.tries, 8, "acme", 500)) == 100


def test_threads_of_processes(hammer: Callable[..., list[int]]) -> None:
    assert sum(hammer(workers.tries_in_threads, 8, "acme", 5, 100)) == 100


def test_processes_whose_clocks_differ(hammer: Callable[..., list[int]]) -> None:
    assert sum(hammer(workers.tries_with_clocks_apart, 2, "acme", 1000, 2)) == 100


def test_every_algorithm(hammer: Callable[..., list[list[int]]]) -> None:
    algorithms = ["token_bucket", "fixed_window", "sliding_log", "sliding_counter"]
    counts = hammer(workers.tries_by_algorithm, 4, algorithms, 250)
    assert [sum(each) for each in zip(*counts, strict=True)] == [100] * 4


def test_a_naive_limiter_is_caught(hammer: Callable[..., list[int]]) -> None:
    """Reading, adding and writing admits more: the hammer hits hard enough to show it."""
    assert sum(hammer(workers.naive_tries, NAIVE_ONES, "naive", 100, 500)) > 110
