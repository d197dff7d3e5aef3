"""What the store keeps for each of 10,000 callers: of a bucket, and of a log that is full."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import redis
from django.core.management.base import CommandError

from demo_project.serving import bundled_valkey
from ratelimits.usage.recorder import EVERY

from .http import Caller
from .patience import until_timely
from .server import demo_server
from .tables import Table

CALLERS = 10_000
# What a day allows, and so what a full log holds.
QUOTA = 500
THREADS = 2


def run() -> list[Table]:
    with bundled_valkey() as url, demo_server(url) as port, redis.Redis.from_url(url) as client:
        bucket = of_buckets(port, client)
        log = until_timely(lambda: of_logs(port, client), f"{QUOTA} calls")
    rows = [_row("token bucket", bucket, 1.0), _row("sliding log", log, log / bucket)]
    notes = [
        "Valkey's used_memory. Every bucket was called over HTTP. One log was, until it was full;",
        "the others are copies of it under names of the same length.",
    ]
    return [Table(f"{QUOTA} per day, {CALLERS:,} callers", rows, notes)]


def _row(name: str, per_caller: float, times: float) -> dict[str, Any]:
    return {
        "counted by": name,
        "callers": CALLERS,
        "bytes a caller": round(per_caller),
        "times a bucket": round(times, 1),
    }


def of_buckets(port: int, client: redis.Redis) -> float:
    """Bytes a caller."""
    before = _emptied(port, client)
    until_timely(lambda: _all_called(port, client), f"{CALLERS} calls", 5)
    return (_used(client) - before) / CALLERS


def _all_called(port: int, client: redis.Redis) -> bool | None:
    """Call everybody; None if the store was away for a moment and some are missing even so.

    Whoever was called before has a bucket of the same size afterwards.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda share: _call(port, share), range(THREADS)))
    _only_callers(client)
    return client.dbsize() == CALLERS or None


def _call(port: int, share: int) -> None:
    """One call of each caller in a share, over one connection."""
    with Caller(port) as caller:
        for number in range(share, CALLERS, THREADS):
            caller.name = f"caller-{number}"
            caller.get("/daily/bucket")


def of_logs(port: int, client: redis.Redis) -> float | None:
    """Bytes a caller; None if the store was away for a moment and the log has gaps."""
    before = _emptied(port, client)
    with Caller(port) as caller:
        passed = sum(caller.get("/daily/log").passed for _ in range(QUOTA))
    _only_callers(client)
    keys = [key.decode() for key in client.scan_iter() if isinstance(key, bytes)]
    logs = [key for key in keys if client.type(key) == b"list"]
    # The log's first entry is its head; the caller's own key is beside it.
    if passed != QUOTA or (len(keys), len(logs)) != (2, 1) or client.llen(logs[0]) != QUOTA + 1:
        return None
    for key in keys:
        _copy(client, key)
    return (_used(client) - before) / CALLERS


def _copy(client: redis.Redis, key: str) -> None:
    """As many callers as are to be, with the last characters of the key changed."""
    with client.pipeline(transaction=False) as pipeline:
        for number in range(CALLERS - 1):
            pipeline.copy(key, f"{key[:-6]}#{number:05d}")
        copied = pipeline.execute()
    if not all(copied):
        raise CommandError("A log of that name was there already.")


def _emptied(port: int, client: redis.Redis) -> int:
    """The memory in use by an empty store to which all connections are open."""
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda _: _warm_up(port), range(THREADS)))
    # Valkey would free it some time later, and count it until then.
    client.execute_command("FLUSHALL", "SYNC")  # type: ignore[no-untyped-call]
    return _used(client)


def _warm_up(port: int) -> None:
    with Caller(port) as caller:
        for _ in range(20):
            caller.get("/daily/bucket")


def _only_callers(client: redis.Redis) -> None:
    """Usage is no part of it, and written some seconds later; nor is the list of processes."""
    while True:
        time.sleep(2 * EVERY)
        found = [key for kind in ("hash", "zset") for key in client.scan_iter(_type=kind)]
        if not found:
            return
        client.delete(*found)


def _used(client: redis.Redis) -> int:
    return int(client.info("memory")["used_memory"])
