"""What a Redis or Valkey tells of itself: over the store's own connections, without CONFIG SET."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import redis
from redis.exceptions import RedisError, ResponseError
from redis.sentinel import SentinelConnectionPool

from .facts import Keys, RedisFacts

# A look at keys ends after so many, or so many seconds.
MOST_KEYS = 20_000
MOST_SECONDS = 1.0
BATCH = 500
EXAMPLES = 5
# Made into a key, to see what stands before and behind the store's own part of it.
MARK = "ratelimits-mark"


def look(client: redis.Redis, key_of_mark: str) -> RedisFacts:
    """Raises RedisError if the server does not answer in time."""
    info = _told(client, "INFO")
    return RedisFacts(info, _save(client), _keys(client, key_of_mark))


def look_at_nodes(
    pools: Mapping[str, redis.ConnectionPool], key_of_mark: str
) -> dict[str, RedisFacts | None]:
    """The same of each node of a cluster; None for one that does not answer in time."""
    found: dict[str, RedisFacts | None] = {}
    for name, pool in pools.items():
        try:
            found[name] = look(redis.Redis(connection_pool=pool), key_of_mark)
        except RedisError:
            found[name] = None
    return found


def address(client: redis.Redis) -> str:
    """Where the server is, without user and password."""
    pool = client.connection_pool
    kwargs = pool.connection_kwargs
    if isinstance(pool, SentinelConnectionPool):
        return f'the primary of "{pool.service_name}", as Sentinel knows it'
    place = kwargs.get("path") or f"{kwargs.get('host')}:{kwargs.get('port')}"
    secure = " over TLS" if issubclass(pool.connection_class, redis.SSLConnection) else ""
    return f"{place}, database {kwargs.get('db') or 0}{secure}"


def _save(client: redis.Redis) -> str | None:
    """When snapshots are written; "" for never."""
    config = _told(client, "CONFIG", "GET", "save") or {}
    # Its keys are texts or bytes, as the protocol goes.
    saved = [value for name, value in config.items() if name in ("save", b"save")]
    if not saved:
        return None
    return saved[0].decode() if isinstance(saved[0], bytes) else str(saved[0])


def _told(client: redis.Redis, *command: Any) -> Any:
    """The answer; None if this user may not ask, as with many that others run for one."""
    try:
        return client.execute_command(*command)  # type: ignore[no-untyped-call]
    except ResponseError:
        return None


def _keys(client: redis.Redis, key_of_mark: str) -> Keys | None:
    """Which of our keys have no end; None if they can't be told from others, or asked for."""
    before, found, behind = key_of_mark.partition(MARK)
    if not found:
        return None
    # In a cluster, numbers follow.
    before = before.removesuffix("}")
    until = time.monotonic() + MOST_SECONDS
    looked_at, ours, endless, cursor = 0, 0, 0, 0
    examples: list[bytes] = []
    while looked_at < MOST_KEYS and time.monotonic() < until:
        batch = _told(client, "SCAN", cursor, "COUNT", BATCH)
        if batch is None:
            return None
        cursor, names = int(batch[0]), batch[1]
        own = [name for name in names if _is_ours(name, before, behind)]
        immortal = _endless(client, own)
        looked_at, ours, endless = looked_at + len(names), ours + len(own), endless + len(immortal)
        examples += immortal[: EXAMPLES - len(examples)]
        if cursor == 0:
            break
    texts = tuple(name.decode(errors="replace") for name in examples)
    return Keys(looked_at, ours, endless, texts, complete=cursor == 0)


def _is_ours(name: bytes, before: str, behind: str) -> bool:
    return name.startswith(before.encode()) and name.endswith(behind.encode())


def _endless(client: redis.Redis, names: list[bytes]) -> list[bytes]:
    with client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.pttl(name)
        return [name for name, left in zip(names, pipe.execute(), strict=True) if left == -1]
