"""What is no outage: the store is there, and something in it is not as it was."""

from __future__ import annotations

import logging
import socket
import threading
import time
from typing import Any

import pytest

from ratelimits.limiter import take
from ratelimits.models import PlanLimit
from ratelimits.stores import get_store
from tests.doors import make_plan
from tests.fresh import PATIENT
from tests.servers import RedisServer
from tests.settings import redis_caches

from .machine import close_the_store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _counted_there(redis_server: RedisServer, settings: Any) -> Any:
    make_plan("api 3/366d")
    settings.CACHES = redis_caches(redis_server.url)
    settings.RATELIMITS = {**PATIENT, "STORE_FAILURE": "local"}
    yield
    close_the_store()


def left(key: str = "acme") -> int:
    (outcome,) = take(key).outcomes
    return outcome.remaining if outcome.allowed else -1


def is_open() -> bool:
    store: Any = get_store()
    return bool(store.breaker.is_open)


def test_forgotten_scripts(redis_server: RedisServer) -> None:
    """And a restart of the server, which forgets them too."""
    assert left() == 2
    redis_server.client().script_flush()
    assert left() == 1
    assert not is_open()


def test_a_restart_with_an_empty_memory(redis_server: RedisServer) -> None:
    """Connections that it closed are no reason to go without it."""
    assert left() == 2
    redis_server.restart()
    assert left() == 2
    assert not is_open()


@pytest.mark.parametrize("spoilt", ["the caller's", "the plans'"])
def test_a_key_of_another_type(
    spoilt: str, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """It is as good as none: a full bucket, and a version that nobody has set."""
    if spoilt == "the plans'":
        PlanLimit.objects.get().save()
    else:
        left()
    client = redis_server.client()
    (key,) = client.keys("*")
    client.delete(key)
    client.sadd(key, "somebody else's")
    assert [left() for _ in range(4)] == [2, 1, 0, -1]
    assert not is_open()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_database_that_the_server_does_not_have(
    redis_server: RedisServer, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody gets to count there: told once, and not asked for anew by each request."""
    settings.CACHES = redis_caches(f"redis://{redis_server.address}/99")
    assert [left() for _ in range(4)] == [2, 1, 0, -1]
    assert is_open()
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.name for record in errors] == ["ratelimits"]


def test_a_name_that_nobody_resolves(
    redis_server: RedisServer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks the resolver waits for it: it knows nothing of timeouts. Nobody else does."""
    let_go = threading.Event()

    def hang(*args: Any, **kwargs: Any) -> Any:
        let_go.wait(10)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    settings.CACHES = redis_caches("redis://redis.example:6379/0")
    first = threading.Thread(target=left)
    first.start()
    time.sleep(0.1)
    let_go.set()
    first.join()
    assert is_open()
