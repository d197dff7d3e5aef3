"""Async callers who stop waiting: their replies are read by nobody else."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from ratelimits.limiter import atake
from ratelimits.models import Plan
from tests.doors import own_limit
from tests.fresh import PATIENT
from tests.servers import RedisServer
from tests.settings import redis_caches

pytestmark = pytest.mark.django_db(transaction=True)

CALLERS = 20
# The quota of each caller tells whose an answer is, as nobody takes so much.
APART = 10_000
SEED = random.randrange(10**6)


@contextmanager
def slow(server: RedisServer, longest: float) -> Iterator[str]:
    """The URL of a server whose replies come late, by half as many seconds at least."""
    open_ones: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def start(target: Any, *args: Any) -> None:
        threads.append(threading.Thread(target=target, args=args))
        threads[-1].start()

    def forward(source: socket.socket, sink: socket.socket, delay: float) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                time.sleep(random.uniform(delay / 2, delay))
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", server.port))
                open_ones.extend((near, far))
                start(forward, near, far, 0)
                start(forward, far, near, longest)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        start(accept)
        try:
            yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
        finally:
            for each in (listener, *open_ones):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()
            for thread in threads:
                thread.join()


async def take_for(number: int) -> None:
    (outcome,) = (await atake(f"caller-{number}")).outcomes
    quota = (number + 1) * APART
    assert outcome.limit.quota == quota
    assert quota - APART < outcome.remaining < quota, (number, outcome)


async def test_cancelled_takes(redis_server: RedisServer, settings: Any) -> None:
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    await sync_to_async(make_callers)()
    with slow(redis_server, 0.05) as url:
        settings.CACHES = redis_caches(url)
        settings.RATELIMITS = PATIENT
        gave_up = 0
        for _ in range(8):
            tasks = [asyncio.create_task(take_for(number)) for number in range(CALLERS)]
            doomed = chance.sample(tasks, CALLERS // 2)
            for task in doomed:
                await asyncio.sleep(chance.uniform(0, 0.001))
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert [
                e for e in ended if not (e is None or isinstance(e, asyncio.CancelledError))
            ] == []
            gave_up += sum(isinstance(e, asyncio.CancelledError) for e in ended)
        assert gave_up > CALLERS
        # And those who follow.
        await asyncio.gather(*(take_for(number) for number in range(CALLERS)))


def make_callers() -> None:
    Plan.objects.create(slug="free", name="free", is_default=True)
    for number in range(CALLERS):
        own_limit(f"caller-{number}", f"{(number + 1) * APART}/366d")
