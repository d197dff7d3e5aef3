"""Redis behind Sentinel: connections of our own that follow a fail-over."""

from __future__ import annotations

from copy import copy

import redis
from redis.sentinel import SentinelConnectionPool

from .redis_connections import own_pool


def own_sentinel_pool(pool: SentinelConnectionPool, timeout: float) -> SentinelConnectionPool:
    """Connections to whoever is the master, with a timeout in seconds for the sentinels too.

    Each new connection asks them. Once they name another master, idle connections to the one
    before are closed.
    """
    manager = copy(pool.sentinel_manager)
    manager.sentinels = [
        redis.Redis(connection_pool=own_pool(sentinel.connection_pool, timeout))
        for sentinel in manager.sentinels
    ]
    like = own_pool(pool, timeout)
    options = dict(like.connection_kwargs)
    # What belongs to the alias's own pool.
    options.pop("connection_pool")
    return SentinelConnectionPool(  # type: ignore[no-untyped-call]
        pool.service_name,
        manager,
        is_master=True,
        check_connection=pool.check_connection,
        connection_class=like.connection_class,
        max_connections=like.max_connections,
        **options,
    )
