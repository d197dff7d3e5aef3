"""Several real processes on one bucket admit exactly what there is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from ratelimits.models import Plan
from tests.conformance.shared import NAIVE_ONES
from tests.fresh import PATIENT
from tests.processes import Crowd, crowd
from tests.servers import RedisServer
from tests.settings import redis_caches

from . import workers

pytestmark = pytest.mark.django_db(transaction=True)


Hammer = Callable[[int], AbstractContextManager[Crowd]]


@pytest.fixture
def hammer(on_redis: RedisServer) -> Hammer:
    """So many processes on the same Redis and database."""
    Plan.objects.create(slug="p", name="P", is_default=True).limits.create(name="n", rate="100/h")
    settings = {"CACHES": redis_caches(on_redis.url), "RATELIMITS": PATIENT}
    return lambda count: crowd(count, settings)


def test_processes_and_their_threads(hammer: Hammer) -> None:
    """4,000 tries on 100, each time."""
    with hammer(8) as processes:
        assert sum(processes.run(workers.tries, "acme", 500)) == 100
        assert sum(processes.run(workers.tries_in_threads, "bakery", 5, 100)) == 100


def test_processes_whose_clocks_differ(hammer: Hammer) -> None:
    with hammer(2) as processes:
        assert sum(processes.run(workers.tries_with_clocks_apart, "acme", 1000, 2)) == 100


def test_every_algorithm_and_a_naive_one(hammer: Hammer) -> None:
    """Reading, adding and writing admits more: the hammer hits hard enough to show it."""
    algorithms = ["token_bucket", "fixed_window", "sliding_log", "sliding_counter"]
    with hammer(NAIVE_ONES) as processes:
        counts = processes.run(workers.tries_by_algorithm, algorithms, 250)
        assert [sum(each) for each in zip(*counts, strict=True)] == [100] * 4
        assert sum(processes.run(workers.naive_tries, "naive", 100, 500)) > 110
