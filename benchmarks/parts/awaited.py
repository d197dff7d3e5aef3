"""atake(), one at a time and a hundred at once, in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle
from typing import Any

from redis.asyncio import Redis

from benchmarks.bench import Bench, tenants
from benchmarks.ours import CACHE_GET, ONE, cache_get, taking
from benchmarks.settings import REDIS
from benchmarks.table import Row, timed
from benchmarks.timing import Subject
from ratelimits.limiter import atake

AT_ONCE = 100
SCRIPT = "a bare script call (redis.asyncio)"
ATAKE = "atake, 1 limit"

Call = Callable[[], Awaitable[object]]


def rows(bench: Bench) -> Iterator[Row]:
    loop = asyncio.new_event_loop()
    client = Redis.from_url(REDIS, max_connections=AT_ONCE)
    try:
        digest = loop.run_until_complete(client.script_load("return 1"))
        turn = cycle(tenants("one"))

        async def call() -> object:
            return await client.evalsha(digest, 0)

        async def acall() -> object:
            return (await atake(next(turn))).headers()

        yield from _rows(bench, loop, call, acall)
    finally:
        loop.run_until_complete(client.aclose())
        loop.close()


def _rows(bench: Bench, loop: Any, script: Call, ours: Call) -> Iterator[Row]:
    def each(call: Call, at_once: int) -> Callable[[], object]:
        async def all_of_them() -> None:
            if at_once == 1:
                for _ in range(10):
                    await call()
            else:
                await asyncio.gather(*[call() for _ in range(at_once)])

        return lambda: loop.run_until_complete(all_of_them())

    names = {}
    subjects = [cache_get(), Subject(ONE, taking("one"))]
    for what, call in ((SCRIPT, script), (ATAKE, ours)):
        for at_once in (1, AT_ONCE):
            name = f"{what}, {at_once} at once"
            names[name] = at_once
            subjects.append(Subject(name, each(call, at_once), calls=max(10, at_once)))
    times = bench.race(subjects)
    for name in names:
        yield timed(times, name, CACHE_GET)
    for name in names:
        if name.startswith(ATAKE):
            yield timed(times, name, ONE)
