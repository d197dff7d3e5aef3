"""Tasks for Celery, some of which an API refuses for a while, and what they saw, kept in Redis.

A worker imports this; tests import it too, and say where the broker is.
"""

from __future__ import annotations

import json
import os
from typing import Any

import redis
from celery import Celery, shared_task

from ratelimits.client.celery import PoliteTask
from ratelimits.client.errors import RetryLater

WHERE = "RATELIMITS_TEST_BROKER"

app = Celery("tests")


def use(url: str) -> None:
    app.conf.update(broker_url=url, result_backend=url)


use(os.environ.get(WHERE, "redis://"))


def note(task: Any, key: str) -> int:
    """Keep what a task saw of itself; how many there are of this key."""
    request = task.request
    # A direct call was delivered by nobody.
    delivery = request.delivery_info or {}
    seen = {
        "id": request.id,
        "retries": request.retries,
        "headers": request.headers,
        "queue": delivery.get("routing_key"),
        "priority": delivery.get("priority"),
        "limits": request.timelimit,
    }
    with redis.Redis.from_url(app.conf.broker_url) as client:
        return int(client.rpush(f"seen:{key}", json.dumps(seen)))


def refuse(times: int, seen: int, delay: float = 0.05) -> int:
    if seen <= times:
        raise RetryLater(delay, "daily", "too many")
    return seen


@app.task(base=PoliteTask, bind=True, max_retries=2)
def bound(self: Any, key: str, times: int) -> int:
    return refuse(times, note(self, key))


@app.task(base=PoliteTask, acks_late=True)
def late(key: str, times: int, delay: float = 0.05) -> int:
    return refuse(times, note(late, key), delay)


@app.task(base=PoliteTask, max_parks=2, autoretry_for=(Exception,), default_retry_delay=0)
def impatient(key: str, times: int) -> int:
    return refuse(times, note(impatient, key))


@app.task(base=PoliteTask, bind=True, autoretry_for=(Exception,), default_retry_delay=0)
def failing(self: Any, key: str, times: int) -> int:
    """Parked at first, and then once there is another error."""
    refuse(times, seen := note(self, key))
    if seen == times + 1:
        raise ValueError("not parked")
    return refuse(times + 2, seen)


@app.task(base=PoliteTask)
def nested(key: str, times: int, inner: bool = False) -> Any:
    """Calls itself."""
    if inner:
        return refuse(times, note(nested, key))
    return {"inner": nested(key, times, inner=True)}


@shared_task(base=PoliteTask)
def shared(key: str, times: int) -> int:
    return refuse(times, note(shared, key))


class Slow(PoliteTask):
    name = "slow"
    max_retries = 0

    def __init__(self) -> None:
        self.times = 2

    def run(self, key: str) -> int:
        return refuse(self.times, note(self, key))


slow = app.register_task(Slow())


@app.task(bind=True)
def follow(self: Any, before: Any, key: str) -> Any:
    note(self, key)
    return before
