"""Connections to Redis of the store's own, and what their errors mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    ClusterDownError,
    ConnectionError,
    InvalidResponse,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)
from redis.retry import Retry

MOST_CONNECTIONS = 2**31
# Options of another pool's connections that are not for ours, or that ours makes anew.
NOT_INHERITED = ("retry_on_error", "retry_on_timeout", "decode_responses", "encoding")
NOT_INHERITED_PREFIXES = ("maint_notifications_", "oss_cluster_maint_", "orig_")
# The server is away, or can't do its work now. Anything else it says is a bug, ours or that of
# whoever wrote to our keys.
FAULTS = (
    ConnectionError,
    TimeoutError,
    InvalidResponse,
    ReadOnlyError,
    OutOfMemoryError,
    ClusterDownError,
    MasterDownError,
    TryAgainError,
    NoPermissionError,
)
# Those that the client has no name for, and any that a script reports of one of its commands.
FAULT = re.compile(
    "(?:^|-)(?:BUSY|CLUSTERDOWN|MASTERDOWN|MISCONF|NOREPLICAS|OOM|READONLY) |can't run this command"
)


def own_pool(pool: Any, timeout: float) -> redis.ConnectionPool:
    """Connections like those of a pool, with a timeout in seconds and no second tries."""
    options = {
        name: value
        for name, value in pool.connection_kwargs.items()
        if name not in NOT_INHERITED and not name.startswith(NOT_INHERITED_PREFIXES)
    }
    options.update(
        _without_notifications(),
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        decode_responses=False,
        max_connections=MOST_CONNECTIONS,
        redis_connect_func=_greeting(options.get("redis_connect_func")),
    )
    return redis.ConnectionPool(connection_class=pool.connection_class, **options)


def _without_notifications() -> dict[str, Any]:
    """Notices of maintenance stretch timeouts, and hide an unread reply from the pool."""
    try:
        from redis.maint_notifications import MaintNotificationsConfig
    except ImportError:
        # Older than they are.
        return {}
    return {"maint_notifications_config": MaintNotificationsConfig(enabled=False)}


def _greeting(own: Callable[[Any], None] | None) -> Callable[[Any], None]:
    """What is said first on a new connection: what the client says, or the alias's own words."""

    def greet(connection: Any) -> None:
        try:
            if own is None:
                connection.on_connect()
            else:
                own(connection)
        except BaseException as error:
            # The client closes it after its own errors only, and would else use it as it is:
            # without a password, in the wrong database, or with a reply unread.
            connection.disconnect()
            told = f"Error connecting to Redis: {error}"
            if isinstance(error, ResponseError) and not is_fault(error):
                # Such as of a database that it does not have. Whatever is asked, nobody gets to.
                raise ConnectionError(told) from error
            if type(error) in (ConnectionError, TimeoutError):
                # As it reads it could be of a command, which may have been done; none was sent.
                raise type(error)(told) from error
            raise

    return greet


def only_reads(error: RedisError) -> bool:
    """Whether who answered was the primary once, and another one has to be looked for."""
    return isinstance(error, ReadOnlyError) or "READONLY " in str(error)


def is_fault(error: RedisError) -> bool:
    """Whether the server is away or can't do its work now, whatever it is asked."""
    return isinstance(error, FAULTS) or bool(FAULT.search(str(error)))
