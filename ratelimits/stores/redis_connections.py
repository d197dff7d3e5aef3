"""Connections to Redis of the store's own, and what their errors mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    ConnectionError,
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
# The server is away, or can't do its work now. Anything else it says is a bug, ours or that of
# whoever wrote to our keys.
FAULTS = (
    ConnectionError,
    TimeoutError,
    ReadOnlyError,
    OutOfMemoryError,
    ClusterDownError,
    MasterDownError,
    TryAgainError,
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
)


def own_pool(pool: Any, timeout: float) -> redis.ConnectionPool:
    """Connections like those of a pool, with a timeout in seconds and no second tries."""
    options = dict(pool.connection_kwargs)
    for name in ("retry_on_error", "retry_on_timeout", "decode_responses", "encoding"):
        options.pop(name, None)
    options.update(
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        decode_responses=False,
        max_connections=MOST_CONNECTIONS,
    )
    return redis.ConnectionPool(connection_class=pool.connection_class, **options)


def exchange(pool: redis.ConnectionPool, command: Sequence[Any]) -> Any:
    """Send one command and read its reply. Raises RedisError."""
    connection: Any = pool.get_connection()
    try:
        connection.send_command(*command)
        return connection.read_response()
    except ResponseError:
        # A reply as good as any.
        raise
    except BaseException:
        connection.disconnect()
        raise
    finally:
        pool.release(connection)


def is_fault(error: RedisError) -> bool:
    """Whether the server is away or can't do its work now, whatever it is asked."""
    return isinstance(error, FAULTS)
