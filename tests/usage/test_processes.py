"""Usage of real processes: what they write by themselves, at their end, and of their forks."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from demo_project import settings as demo
from ratelimits import limiter, usage
from ratelimits.models import Plan
from tests.faults.conftest import prepared  # noqa: F401 (a fixture)
from tests.faults.serving import gunicorn
from tests.processes import run_processes
from tests.servers import RedisServer
from tests.settings import redis_caches
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
TAKES = 20


@pytest.fixture
def on_disk(on_redis: RedisServer) -> dict[str, Any]:
    """The settings of processes that count where the test reads."""
    plan = Plan.objects.create(slug="pro", name="Pro", is_default=True)
    plan.limits.create(name="api", rate="1000000/d")
    return {
        "CACHES": redis_caches(on_redis.url),
        "RATELIMITS": {"STORE_TIMEOUT": 20, "STORE_FAILURE": "deny", "WORKERS": 1},
    }


def allowed(key: str) -> int:
    (counts,) = usage.recent([key])
    return counts.allowed


def take(times: int, key: str) -> None:
    for _ in range(times):
        assert limiter.take(key).allowed


def take_and_end(index: int) -> None:
    take(TAKES, "acme")


def test_what_is_left_is_written_at_the_end(on_disk: dict[str, Any]) -> None:
    run_processes(take_and_end, 2, settings=on_disk)
    assert allowed("acme") == 2 * TAKES


def take_and_wait(index: int) -> float:
    """How long it took until what was taken could be read, without anybody's doing."""
    take(TAKES, "acme")
    started = time.monotonic()
    wait_until(lambda: allowed("acme") == TAKES)
    return time.monotonic() - started


def test_a_process_writes_by_itself(on_disk: dict[str, Any]) -> None:
    (seconds,) = run_processes(take_and_wait, 1, settings=on_disk)
    assert seconds > 0
    assert allowed("acme") == TAKES


def fork(index: int) -> int:
    """The child takes with what its parent had noted when it was forked."""
    take(TAKES, "acme")
    child = os.fork()
    if child == 0:
        take(1, "child")
        try:
            wait_until(lambda: allowed("child") == 1)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return allowed("child")


def test_a_fork_writes_its_own_and_nothing_twice(on_disk: dict[str, Any]) -> None:
    assert run_processes(fork, 1, settings=on_disk) == [1]
    assert allowed("acme") == TAKES


def test_workers_of_gunicorn(
    redis_server: RedisServer,
    prepared: Path,  # noqa: F811
    settings: Any,
    fresh: None,
) -> None:
    """Forked from one that has taken once itself, and ended as a deployment ends them."""
    settings.CACHES = redis_caches(redis_server.url)
    settings.SECRET_KEY = demo.SECRET_KEY
    options = ("--preload", "tests.faults.wsgi")
    with gunicorn(prepared, redis_server.url, *options, workers=2, STORE_TIMEOUT=20) as served:
        for _ in range(TAKES):
            assert served.ask("bakery").status == 200
    assert allowed("bakery") == TAKES + 1
