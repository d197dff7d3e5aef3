"""Each store tells how many processes announced themselves to it lately."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from ratelimits import limiter
from ratelimits.models import Plan
from ratelimits.stores import get_store, processes
from ratelimits.stores.base import Store
from ratelimits.stores.redis import RedisStore
from tests.fresh import PATIENT
from tests.servers import RedisServer

from .stores import close, redis_store
from .watching import watch

TOGETHER = ("django-redis", "django", "valkey", "cluster", "memcached", "postgresql", "sqlite")


def count(store: Store, ident: str) -> int:
    return store.count_processes(ident, 300)


@pytest.fixture(params=TOGETHER)
def shared(
    request: pytest.FixtureRequest,
    lent: Callable[[str], Store],
    monkeypatch: pytest.MonkeyPatch,
) -> Store:
    """A store that nobody was counted by yet."""
    name = f"processes of {request.node.name} {time.time_ns()}"
    monkeypatch.setattr(processes, "key", lambda: name)
    return lent(request.param)


def test_each_is_counted_once(shared: Store) -> None:
    assert [count(shared, ident) for ident in ("a", "b", "a", "c", "b")] == [1, 2, 2, 3, 3]


def test_who_only_looks_is_not_counted(shared: Store) -> None:
    assert shared.recent_processes(300) == 0
    for ident in "ab":
        count(shared, ident)
    assert [shared.recent_processes(300) for _ in range(2)] == [2, 2]


def test_all_at_once(shared: Store) -> None:
    def announce(index: int) -> int:
        try:
            return count(shared, f"process-{index}")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(announce, range(8)))
    assert max(counts) == 8
    assert count(shared, "process-0") == 8


def test_memory_is_nobody_elses(lent: Callable[[str], Store]) -> None:
    assert [count(lent("memory"), ident) for ident in "ab"] == [1, 1]


def test_redis_forgets_who_is_gone(redis_server: RedisServer, redis_only: RedisStore) -> None:
    key, client = redis_only.make_key(processes.key()), redis_server.client()
    client.zadd(key, {"gone": time.time() - 302, "idle": time.time() - 290})
    assert redis_only.recent_processes(300) == 1
    assert count(redis_only, "me") == 2
    assert set(client.zrange(key, 0, -1)) == {b"idle", b"me"}
    assert 290 < client.ttl(key) <= 300


def test_projects_are_counted_apart(redis_server: RedisServer, settings: Any) -> None:
    """Those with another prefix, and those with another secret."""
    one, two = (redis_store(redis_server.url, KEY_PREFIX=prefix) for prefix in ("one", "two"))
    counts = [count(one, "a"), count(two, "b")]
    settings.RATELIMITS = {"KEY_SECRET": "another"}
    assert [*counts, count(one, "c")] == [1, 1, 1]
    close(one)
    close(two)


@pytest.mark.django_db(transaction=True)
def test_no_take_is_a_command_more_for_it(on_redis: RedisServer, settings: Any) -> None:
    Plan.objects.create(slug="p", name="P", is_default=True).limits.create(name="n", rate="10/h")
    settings.RATELIMITS = {**PATIENT, "WORKERS": None}
    guarded: Any = get_store()
    limiter.take("acme")
    with watch(on_redis) as seen:
        for _ in range(20):
            limiter.take("acme")
        wait_until(lambda: guarded.processes.counted == 1)
    takes = [command for command in seen.sent if command.startswith("EVALSHA")]
    assert len(takes) == 20
    # A new connection introduces itself, and one may be for counting.
    assert len(seen.sent) <= 24


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
