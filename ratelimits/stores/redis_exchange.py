"""One command and its reply, over a connection that nobody else has meanwhile."""

from __future__ import annotations

import select
import socket
from contextlib import suppress
from os import getpid
from typing import Any
from weakref import finalize

import redis
from redis.exceptions import ConnectionError, RedisError, ResponseError, TimeoutError

from .redis_connections import only_reads

# Where a connection keeps how to look at it.
LOOK = "_ratelimits_look"


class Connections:
    """The connections of one process to one server, made by a pool.

    They are kept here rather than in the pool, whose own care for them takes as long as the
    command. Not those of Sentinel, which follow a fail-over, nor those whose credentials expire:
    these their pool has to look after.
    """

    def __init__(self, pool: redis.ConnectionPool) -> None:
        self.pool = pool
        # Whether credentials may end before the connection does.
        self.expire = bool(pool.connection_kwargs.get("credential_provider"))
        self._keeps = type(pool) is redis.ConnectionPool and not self.expire
        self._free: list[Any] = []
        self._process = 0
        # Of a store that was replaced, as in tests, nobody else closes them.
        finalize(self, _close, self._free).atexit = False

    def exchange(self, command: bytes, first: bytes | None = None) -> Any:
        """Send a command, after another one if it needs that, and read its reply.

        Raises RedisError.

        Whatever comes in between, be it a signal or a greenlet's end, closes the connection: the
        next reply on it would be that of this command.
        """
        connection = self._lent()
        try:
            if first is not None:
                connection.send_packed_command([first], check_health=False)
                connection.read_response(disable_decoding=True)
            connection.send_packed_command([command], check_health=False)
            reply = connection.read_response(disable_decoding=True)
        except ResponseError as error:
            # A reply as good as any.
            self._back(connection)
            if only_reads(error):
                self.close()
            raise
        except BaseException as error:
            connection.disconnect()
            if not self._keeps:
                self._back(connection)
            if isinstance(error, (ConnectionError, TimeoutError)):
                # What ended this one, such as another server at the address, may have ended
                # those that lie idle: each would cost a timeout, and each probe find one.
                self.close()
            raise
        self._back(connection)
        return reply

    def _lent(self) -> Any:
        try:
            return self._kept() if self._keeps else self.pool.get_connection()
        except RedisError:
            raise
        except Exception as error:
            # Such as that of a project's own provider of credentials.
            raise ConnectionError(f"Error connecting to Redis: {error!r}") from error

    def _kept(self) -> Any:
        if self._process != getpid():
            # Those from before a fork are the parent's.
            self._free.clear()
            self._process = getpid()
        try:
            connection = self._free.pop()
        except IndexError:
            return self.pool.make_connection()
        if _is_over(connection):
            connection.disconnect()
            # It will have another socket.
            vars(connection).pop(LOOK, None)
        return connection

    def _back(self, connection: Any) -> None:
        if self._keeps:
            if LOOK not in vars(connection):
                _watch(connection)
            self._free.append(connection)
        else:
            self.pool.release(connection)

    def close(self) -> None:
        """End those that nobody has."""
        _close(self._free)
        self.pool.disconnect(inuse_connections=False)
        manager = getattr(self.pool, "sentinel_manager", None)
        for sentinel in manager.sentinels if manager is not None else ():
            sentinel.connection_pool.disconnect(inuse_connections=False)


def _is_over(connection: Any) -> bool:
    """Whether there is anything to read, which can only be the connection's end."""
    try:
        look = vars(connection).get(LOOK)
        return bool(connection.can_read(0) if look is None else look(0))
    except (RedisError, OSError):
        return True


def _watch(connection: Any) -> None:
    """Keep with a connection how to look at it: the client's own way takes several times longer."""
    sock = getattr(connection, "_sock", None)
    if hasattr(select, "poll") and type(sock) is socket.socket:
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        setattr(connection, LOOK, poll.poll)


def _close(free: list[Any]) -> None:
    while free:
        # Somebody may take the last one meanwhile.
        with suppress(IndexError):
            free.pop().disconnect()
