"""Parking by a worker of Celery's own, with Redis between it and the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, chain, chord, group
from celery.exceptions import Retry

from ratelimits.client.celery import PoliteTask
from ratelimits.client.errors import RetryLater
from tests.client import queue
from tests.conftest import StartServer
from tests.processes import ROOT
from tests.servers import RedisServer
from tests.waiting import wait_until

WORKER = ["worker", "--pool=solo", "--queues=celery,other", "--loglevel=info", "--without-mingle"]
PATIENCE = 60


@pytest.fixture(scope="module")
def broker(
    start_server: StartServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """An empty Redis, and a worker that waits at it."""
    server: RedisServer = start_server("redis")
    server.recover()
    environment = {"DJANGO_SETTINGS_MODULE": "tests.settings", queue.WHERE: server.url}
    log = tmp_path_factory.mktemp("celery") / "log"
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "tests.client.queue", *WORKER],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=output,
            stderr=output,
        )
    before = queue.app.conf.broker_url
    try:
        wait_until_it_works(worker, log)
        queue.use(server.url)
        yield server
    finally:
        worker.kill()
        worker.wait()
        queue.app.close()
        queue.use(before)


def wait_until_it_works(worker: subprocess.Popen[bytes], log: Path) -> None:
    def ready() -> bool:
        assert worker.poll() is None, log.read_text()
        return " ready." in log.read_text()

    wait_until(ready, "a worker is ready")


def seen(broker: RedisServer, key: str) -> list[dict[str, Any]]:
    found: Any = broker.client().lrange(f"seen:{key}", 0, -1)
    return [json.loads(one) for one in found]


def test_parked_and_otherwise_the_same(broker: RedisServer) -> None:
    sent = queue.bound.apply_async(
        ("same", 5), queue="other", priority=3, headers={"own": "x"}, time_limit=70
    )
    assert sent.get(timeout=PATIENCE) == 6
    told = seen(broker, "same")
    parked = [one["headers"].pop("ratelimits-parked", 0) for one in told]
    assert parked == [0, 1, 2, 3, 4, 5]
    assert told == [
        {
            "id": sent.id,
            "retries": 0,
            "headers": {"own": "x"},
            "queue": "other",
            "priority": 3,
            "limits": [70, None],
        }
    ] * len(told)


@pytest.mark.parametrize(
    ("task", "args"), [("shared", [2]), ("late", [2]), ("slow", []), ("failing", [0])]
)
def test_any_kind_of_task(broker: RedisServer, task: str, args: list[Any]) -> None:
    getattr(queue, task).delay(task, *args).get(timeout=PATIENCE)
    assert len(seen(broker, task)) == 3


def test_other_errors_are_retried_as_ever(broker: RedisServer) -> None:
    assert queue.failing.delay("both", 1).get(timeout=PATIENCE) == 4
    told = seen(broker, "both")
    assert [one["retries"] for one in told] == [0, 0, 1, 1]
    assert told[-1]["headers"] == {"ratelimits-parked": 2}


def test_what_is_sent_is_what_the_queue_sent(broker: RedisServer) -> None:
    assert queue.nested.delay("nested", 2).get(timeout=PATIENCE) == {"inner": 3}


def test_not_for_ever(broker: RedisServer) -> None:
    with pytest.raises(RetryLater, match="too many"):
        queue.impatient.delay("ever", 9).get(timeout=PATIENCE)
    assert len(seen(broker, "ever")) == 1 + queue.impatient.max_parks


def test_links_go_on_once(broker: RedisServer) -> None:
    linked = chain(queue.bound.s("first", 2), queue.follow.s("next"))
    assert linked().get(timeout=PATIENCE) == 3
    some = group(queue.bound.s("one", 2), queue.late.s("two", 1))
    assert some().get(timeout=PATIENCE) == [3, 2]
    three = [queue.bound.s("three", 2), queue.late.s("four", 1), queue.shared.s("five", 0)]
    assert chord(three, queue.follow.s("last"))().get(timeout=PATIENCE) == [3, 2, 1]
    # What they are followed by would have come by now a second time, if it did.
    assert queue.shared.delay("end", 0).get(timeout=PATIENCE) == 1
    assert len(seen(broker, "next")) == len(seen(broker, "last")) == 1


def test_a_long_wait_as_others_see_it(broker: RedisServer) -> None:
    """It comes again in time for any broker, and says meanwhile what it waits for."""
    sent = queue.late.delay("long", 1, 4000)
    wait_until(lambda: sent.state == "RETRY", "it is parked")
    assert isinstance(sent.info, RetryLater) and sent.info.delay == 4000
    until = datetime.fromisoformat(parked_until(broker, sent.id)) - datetime.now(timezone.utc)
    assert timedelta(seconds=900 - PATIENCE) < until <= timedelta(seconds=900)


def parked_until(broker: RedisServer, task: str) -> str:
    """When it is to come again, by the message that a worker has for it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found: Any = broker.client().hvals("unacked")
        for headers in [json.loads(one)[0]["headers"] for one in found]:
            # The worker may still have the first one, which was to run at once.
            if headers["id"] == task and headers["eta"]:
                return str(headers["eta"])
        time.sleep(0.01)
    raise AssertionError("it does not wait")


@pytest.fixture
def alone() -> Iterator[Any]:
    """A task that nobody but this process knows."""
    app = Celery("alone", broker="memory://", backend="cache+memory://", set_as_current=False)
    # All that is in memory is for all apps.
    app.conf.task_default_queue = "alone"

    @app.task(base=PoliteTask, shared=False)
    def one(delay: float) -> str:
        if delay:
            raise RetryLater(delay)
        return "done"

    yield one
    app.close()


@pytest.mark.parametrize(
    ("delay", "options", "wait"),
    [
        (0.2, {}, 0.2),
        (1e15, {}, 900),
        (100, {"visibility_timeout": 60}, 30),
        (10, {"visibility_timeout": 60}, 10),
        (4000, {"visibility_timeout": 43200}, 900),
    ],
)
def test_within_what_the_broker_allows(
    delay: float, options: dict[str, Any], wait: float, alone: Any
) -> None:
    alone.app.conf.broker_transport_options = options
    alone.push_request(called_directly=False, id="x", args=(delay,), kwargs={})
    with pytest.raises(Retry) as caught:
        alone.run(delay)
    alone.pop_request()
    assert caught.value.when == wait
    with alone.app.connection_for_read() as connection:
        message = connection.SimpleQueue("alone").get(block=False)
    assert (message.headers["id"], message.payload[0]) == ("x", [delay])


def test_without_a_queue(alone: Any) -> None:
    for call in (alone, alone.run, lambda delay: alone.apply((delay,)).get()):
        assert call(0) == "done"
        with pytest.raises(RetryLater):
            call(1)
