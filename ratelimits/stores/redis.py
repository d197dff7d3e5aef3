"""Redis and Valkey: one script call for an operation, however many limits it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from hashlib import sha1
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
from django.core.cache.backends.base import BaseCache
from redis.exceptions import NoScriptError, RedisError
from redis.sentinel import SentinelConnectionPool

from ratelimits.algorithms import Operation
from ratelimits.exceptions import InvalidStore, StoreError, StoreUnavailable

from . import processes, redis_facts
from .base import Answer, Group, Store
from .facts import ClusterFacts, Facts
from .gates_redis import RedisGates
from .packing import Template, in_protocol, is_log, log_key, pack, unpack
from .redis_alias import pool_of
from .redis_connections import is_fault, own_pool
from .redis_exchange import Connections
from .redis_parts import EVERYONE
from .redis_pipes import NoPipe, Pipes
from .redis_sentinel import own_sentinel_pool
from .usage_redis import RedisTables

if TYPE_CHECKING:
    from .redis_cluster import Cluster


@cache
def script() -> tuple[str, str]:
    """The script's text and its digest."""
    parts = sorted((Path(__file__).parent / "lua").glob("*.lua"))
    text = "\n".join(part.read_text() for part in parts)
    return text, sha1(text.encode(), usedforsecurity=False).hexdigest()


# Announces a process, and counts those that did so lately.
COUNT = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])
"""


class RedisStore(Store):
    """Counts in the server behind a cache alias, over connections of its own."""

    def __init__(self, backend: BaseCache, timeout: float) -> None:
        self.backend = backend
        self.timeout = timeout
        self._when_back: Callable[[], None] | None = None

    @cached_property
    def client(self) -> redis.Redis:
        """A client with the alias's address and credentials, and our timeout.

        A charge is never sent twice: one that timed out may have been counted. As many
        connections as there are requests at once: to run out of them is no fault of the server.
        Raises InvalidStore if the alias's settings make no client.
        """
        try:
            return self._connect()
        except Exception as error:
            # Whatever a client library makes of an address that it can't read.
            raise InvalidStore(f"The cache's settings make no Redis client: {error}") from error

    def _connect(self) -> redis.Redis:
        pool = pool_of(self.backend)
        make = own_sentinel_pool if isinstance(pool, SentinelConnectionPool) else own_pool
        return redis.Redis(connection_pool=make(pool, self.timeout))

    @cached_property
    def connections(self) -> Connections:
        return Connections(self.client.connection_pool)

    @cached_property
    def pipes(self) -> Pipes | None:
        """The connections of event loops; None if threads have to do."""
        pool = self.client.connection_pool
        if self.connections.expire:
            return None
        return Pipes(pool.make_connection, self.timeout)

    @cached_property
    def cluster(self) -> Cluster | None:
        """What counts instead, if the server is one of a cluster.

        Asks it, once in the life of a process. Raises StoreUnavailable if it does not answer.
        """
        from .redis_cluster import find_cluster

        pool = self.client.connection_pool
        return find_cluster(self.backend, pool, self.timeout, self._when_back)

    def when_back(self, then: Callable[[], None]) -> None:
        """See Store.when_back(). Before the first call."""
        self._when_back = then

    def check(self) -> None:
        """See Store.check()."""
        self.client  # noqa: B018

    def make_key(self, key: str) -> str:
        """A key with the alias's prefix and version. The braces keep all in one hash slot."""
        return str(self.backend.make_key("{rl}" + key))

    def run(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        if self.cluster is not None:
            return self.cluster.run(operation, group, costs, now)
        try:
            reply = self.connections.exchange(self._call(operation, group, costs, now))
        except NoScriptError:
            reply = self._do(*self._whole(operation, group, costs, now))
        except RedisError as error:
            raise _meaning(error) from error
        return unpack(reply, len(costs))

    async def arun(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        """See run(). Needs no thread once it is known that the server is no cluster's."""
        if self.pipes is None or self.__dict__.get("cluster", self) is not None:
            return await super().arun(operation, group, costs, now)
        try:
            reply = await self.pipes.exchange(self._call(operation, group, costs, now))
        except NoPipe:
            self.pipes = None
            return await super().arun(operation, group, costs, now)
        except NoScriptError:
            return await super().arun(operation, group, costs, now)
        except RedisError as error:
            raise _meaning(error) from error
        return unpack(reply, len(costs))

    def _call(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None
    ) -> bytes:
        template = self._template(group)
        if operation is Operation.TAKE and now is None:
            return template.command(costs)
        arguments = template.packed.arguments(operation.value, costs, now)
        return in_protocol("EVALSHA", script()[1], *arguments)

    def _whole(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None
    ) -> tuple[str | bytes | int, ...]:
        """The same with the script's text, for a server that does not know it yet."""
        packed = self._template(group).packed
        return ("EVAL", script()[0], *packed.arguments(operation.value, costs, now))

    def _template(self, group: Group) -> Template:
        template = group.prepared.get(self)
        if not isinstance(template, Template):
            template = group.prepared[self] = pack(group, self.make_key).template(script()[1])
        return template

    def _do(self, *parts: str | bytes | int) -> Any:
        if self.cluster is not None:
            # What belongs to no caller is where the limits of everyone are.
            return self.cluster.do(EVERYONE, *parts)
        try:
            return self.connections.exchange(in_protocol(*parts))
        except NoScriptError:
            raise
        except RedisError as error:
            raise _meaning(error) from error

    def versions(self, keys: Sequence[str]) -> tuple[str, ...]:
        if not keys:
            return ()
        if self.cluster is not None:
            return self.cluster.versions(keys)
        values = self._do("MGET", *map(self.make_key, keys))
        return tuple("" if value is None else value.decode() for value in values)

    def set_versions(self, versions: Mapping[str, str], seconds: int) -> None:
        if self.cluster is not None:
            return self.cluster.set_versions(versions, seconds)
        for key, version in versions.items():
            self._do("SET", self.make_key(key), version, "EX", seconds)

    def count_processes(self, ident: str, seconds: int) -> int:
        """See Store.count_processes(). By the server's clock."""
        count: int = self._do("EVAL", COUNT, 1, self.make_key(processes.key()), ident, seconds)
        return count

    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        if self.cluster is not None:
            return self.cluster.reset(group, subjects)
        # Other logs of a subject count for nothing without its own key, and end by themselves.
        keys = {self.make_key(subject) for subject in subjects}
        for slot, ident in zip(group.slots, group.idents, strict=True):
            keys.add(self.make_key(slot.subject))
            if is_log(slot):
                keys.add(self.make_key(log_key(slot, ident)))
        if keys:
            self._do("DEL", *sorted(keys))

    def recent_processes(self, seconds: int) -> int:
        """See Store.recent_processes()."""
        now = int(self._do("TIME")[0])
        key = self.make_key(processes.key())
        return int(self._do("ZCOUNT", key, now - seconds + 1, "+inf"))

    @cached_property
    def usage(self) -> RedisTables:
        """See Store.usage. Of a cluster it is on one node: where the limits of everyone are."""
        return RedisTables(self._do, self.make_key)

    @cached_property
    def gates(self) -> RedisGates:
        """See Store.gates. Of a cluster they are where usage is."""
        return RedisGates(self._do, self.make_key)

    @property
    def address(self) -> str:
        """See Store.address."""
        return redis_facts.address(self.client)

    def facts(self) -> Facts:
        """See Store.facts()."""
        mark = self.make_key(redis_facts.MARK)
        if self.cluster is not None:
            pools = self.cluster.nodes.pools()
            return ClusterFacts(redis_facts.look_at_nodes(pools, mark))
        return redis_facts.look(self.client, mark)

    def lifetime(self, key: str) -> float | None:
        """See Store.lifetime()."""
        left = self._do("PTTL", self.make_key(key))
        if left == -1:
            return float("inf")
        return None if left < 0 else float(left / 1000)

    def close(self) -> None:
        """See Store.close()."""
        self.connections.close()
        # Not asked for now, if nobody has needed to know so far.
        pipes: Pipes | None = self.__dict__.get("pipes")
        if pipes is not None:
            pipes.close()
        cluster: Cluster | None = self.__dict__.get("cluster")
        if cluster is not None:
            cluster.close()


def _meaning(error: RedisError) -> StoreUnavailable | StoreError:
    if is_fault(error):
        return StoreUnavailable(f"Redis can't count now: {error}")
    return StoreError(f"Redis refused a command: {error}")
