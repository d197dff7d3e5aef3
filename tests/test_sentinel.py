"""Redis behind Sentinel: a fail-over costs neither a 500 nor a refusal that no limit caused."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from redis.sentinel import Sentinel

from ratelimits.limiter import take
from ratelimits.stores import breaker as breakers
from ratelimits.stores import get_store
from tests.clusters import is_copy
from tests.doors import make_plan
from tests.fresh import the_redis_store
from tests.sentinels import Watched
from tests.servers import RedisServer
from tests.settings import redis_caches
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db


def through_django_redis(watched: Watched) -> dict[str, Any]:
    return {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": f"redis://{watched.sentinel.service}/0",
        "OPTIONS": {
            "CLIENT_CLASS": "django_redis.client.SentinelClient",
            "CONNECTION_FACTORY": "django_redis.pool.SentinelConnectionFactory",
            "SENTINELS": watched.sentinels,
        },
    }


def through_django(watched: Watched) -> dict[str, Any]:
    return {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": f"redis://{watched.sentinel.service}/0",
        "OPTIONS": {
            "pool_class": "redis.sentinel.SentinelConnectionPool",
            "service_name": watched.sentinel.service,
            "sentinel_manager": Sentinel(watched.sentinels),
        },
    }


@pytest.fixture
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis is not installed")
    servers = Watched(binary, tmp_path_factory.mktemp("sentinel"))
    yield servers
    servers.kill()


def used(decision: Any) -> int:
    (outcome,) = decision.outcomes
    return int(outcome.limit.capacity - outcome.remaining)


@pytest.mark.parametrize(
    ("alias", "end"), [(through_django_redis, RedisServer.kill), (through_django, RedisServer.stop)]
)
def test_takes_follow_a_fail_over(
    alias: Callable[[Watched], dict[str, Any]],
    end: Callable[[RedisServer], None],
    watched: Watched,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(breakers, "PROBE_EVERY", 0.1)
    settings.CACHES = {"default": alias(watched)}
    settings.RATELIMITS = {"STORE_TIMEOUT": 0.5, "LOCAL_REFUSALS": 0}
    make_plan("api 10000/w")
    assert [used(take("acme")) for _ in range(3)] == [1, 2, 3]
    guarded: Any = get_store()
    wait_until(
        partial(is_copy, watched.replica, watched.master), "the replica has all that was counted"
    )

    end(watched.master)
    while watched.master_port() != watched.replica.port or guarded.breaker.is_open:
        assert take("acme").allowed
        time.sleep(0.02)

    before = used(take("acme"))
    assert before > 3, "what the replica had is kept"
    assert [used(take("acme")) for _ in range(2)] == [before + 1, before + 2]
    assert not guarded.breaker.is_open
    guarded.store.close()


def test_no_sentinel_is_waited_for_longer_than_the_store(watched: Watched, settings: Any) -> None:
    """The first of them takes the call and does not answer; the next one does."""
    make_plan("api 9/d")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        entry = through_django_redis(watched)
        entry["OPTIONS"]["SENTINELS"] = [silent.getsockname(), *watched.sentinels]
        settings.CACHES = {"default": entry}
        settings.RATELIMITS = {"STORE_TIMEOUT": 0.5, "STORE_FAILURE": "deny"}
        started = time.monotonic()
        assert take("acme").allowed
        # By the alias's own settings it would be five seconds, several times.
        assert time.monotonic() - started < 4
        the_redis_store().close()


def test_a_name_that_means_another_server_after_a_fail_over(
    redis_server: RedisServer,
    valkey_server: RedisServer,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As hosted ones do it. Who was the primary still answers, but only reads."""
    resolve, primary = socket.getaddrinfo, redis_server

    def resolved(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host == "primary.example":
            host, port = "127.0.0.1", primary.port
        return resolve(host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(breakers, "PROBE_EVERY", 0.05)
    settings.CACHES = redis_caches("redis://primary.example/0")
    settings.RATELIMITS = {"STORE_TIMEOUT": 5, "LOCAL_REFUSALS": 0}
    make_plan("api 10000/w")
    assert take("acme").allowed
    redis_server.client().replicaof("127.0.0.1", valkey_server.port)
    try:
        primary = valkey_server
        guarded: Any = get_store()
        take("acme")
        wait_until(lambda: not guarded.breaker.is_open, "the new one answers")
        take("acme")
        assert list(valkey_server.client().scan_iter("*{rl}*"))
        guarded.store.close()
    finally:
        redis_server.client().replicaof("NO", "ONE")
