"""Every way in which Redis fails, as a context that gives the CACHES to count in meanwhile.

What else may be at its address, or nothing, is in strangers.py.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import redis

from tests.servers import RedisServer, free_port
from tests.settings import redis_caches

Caches = dict[str, dict[str, Any]]
Fault = Callable[[RedisServer], AbstractContextManager[Caches]]
# The server itself is in trouble; afterwards it must be counted in again.
FAULTS: dict[str, Fault] = {}


def fault(kind: dict[str, Fault]) -> Callable[[Callable[[RedisServer], Iterator[Any]]], None]:
    """Adds a generator, named by its words, that may yield CACHES of its own."""

    def add(generator: Callable[[RedisServer], Iterator[Any]]) -> None:
        context = contextmanager(generator)

        @contextmanager
        def made(server: RedisServer) -> Iterator[Caches]:
            with context(server) as caches:
                yield caches or redis_caches(server.url)

        kind[generator.__name__.replace("_", " ")] = made

    return add


def settle(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "the server is not in the trouble that it should be in"
        time.sleep(0.005)


@contextmanager
def config(server: RedisServer, **options: Any) -> Iterator[redis.Redis]:
    """Options of a running server, and as they were before."""
    client = server.client()
    before = {name: client.config_get(name)[name] or "" for name in options}
    for name, value in options.items():
        client.config_set(name, value)
    try:
        yield client
    finally:
        for name, value in before.items():
            client.config_set(name, value)


def hang_up(client: redis.Redis) -> None:
    """End all connections but this one."""
    client.client_kill_filter(_type="normal", skipme=True)


@fault(FAULTS)
def stopped(server: RedisServer) -> Iterator[None]:
    server.stop()
    yield
    server.cont()


@fault(FAULTS)
def killed(server: RedisServer) -> Iterator[None]:
    server.kill()
    yield
    server.start()


@fault(FAULTS)
def out_of_memory(server: RedisServer) -> Iterator[None]:
    with config(server, maxmemory=1, **{"maxmemory-policy": "noeviction"}):
        yield


@fault(FAULTS)
def a_replica(server: RedisServer) -> Iterator[None]:
    with replica(server, serves="yes"):
        yield


@fault(FAULTS)
def a_replica_without_data(server: RedisServer) -> Iterator[None]:
    with replica(server, serves="no"):
        yield


@contextmanager
def replica(server: RedisServer, serves: str) -> Iterator[None]:
    """Of a master that is not there."""
    with config(server, **{"replica-serve-stale-data": serves}) as client:
        client.replicaof("127.0.0.1", free_port())
        try:
            yield
        finally:
            client.replicaof("NO", "ONE")


@fault(FAULTS)
def too_few_replicas(server: RedisServer) -> Iterator[None]:
    with config(server, **{"min-replicas-to-write": 1}):
        yield


@fault(FAULTS)
def can_not_save(server: RedisServer) -> Iterator[None]:
    """MISCONF: the last save failed, here since its folder is gone."""
    client = server.client()
    client.config_set("save", "3600 1")
    shutil.rmtree(server.directory)
    client.bgsave()
    settle(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
    yield
    server.directory.mkdir()
    client.config_set("save", "")


@fault(FAULTS)
def busy_with_a_script(server: RedisServer) -> Iterator[None]:
    with config(server, **{"busy-reply-threshold": 1}) as client, server.connect() as other:
        connection = other.connection_pool.get_connection()
        connection.send_command("EVAL", "while true do end", 0)

        def is_busy() -> bool:
            try:
                client.ping()
            except redis.ResponseError as error:
                return str(error).startswith("BUSY")
            return False

        settle(is_busy)
        try:
            yield
        finally:
            client.script_kill()
            with suppress(redis.ResponseError):
                connection.read_response()
            other.connection_pool.release(connection)


@fault(FAULTS)
def too_many_clients(server: RedisServer) -> Iterator[None]:
    with config(server, maxclients=1) as client:
        hang_up(client)
        yield


@fault(FAULTS)
def a_password_that_nobody_told(server: RedisServer) -> Iterator[None]:
    with config(server, requirepass="secret") as client:
        hang_up(client)
        yield


@fault(FAULTS)
def another_password(server: RedisServer) -> Iterator[Caches]:
    with config(server, requirepass="secret") as client:
        hang_up(client)
        yield redis_caches(f"redis://:other@{server.address}/0")


@contextmanager
def user(server: RedisServer, *rules: str) -> Iterator[Caches]:
    """Someone who may do less than everything."""
    client = server.client()
    client.execute_command("ACL", "SETUSER", "someone", "on", ">secret", "~*", "+@all", *rules)
    yield redis_caches(f"redis://someone:secret@{server.address}/0")
    client.acl_setuser(
        "someone", enabled=True, passwords="+secret", keys=["*"], categories=["+@all"]
    )


@fault(FAULTS)
def scripts_are_forbidden(server: RedisServer) -> Iterator[Caches]:
    with user(server, "-evalsha", "-eval") as caches:
        yield caches


@fault(FAULTS)
def a_command_of_the_script_is_forbidden(server: RedisServer) -> Iterator[Caches]:
    with user(server, "-set") as caches:
        yield caches


@fault(FAULTS)
def our_keys_are_forbidden(server: RedisServer) -> Iterator[Caches]:
    with user(server, "resetkeys", "~theirs:*") as caches:
        yield caches


@fault(FAULTS)
def stopped_behind_a_client_that_swallows(server: RedisServer) -> Iterator[Caches]:
    """Case 37: what its client makes of errors is not for ours."""
    server.stop()
    yield redis_caches(server.url, IGNORE_EXCEPTIONS=True)
    server.cont()
