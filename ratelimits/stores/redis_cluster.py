"""A Redis or Valkey cluster: one script call for all limits of a caller.

A limit of everyone is counted apart, in a second call: after the caller's own limits, which are
given back if it refuses. So is a limit of an address besides those of a tenant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import redis
from django.core.cache.backends.base import BaseCache
from redis.crc import key_slot
from redis.exceptions import NoScriptError
from redis.sentinel import SentinelConnectionPool

from ratelimits.algorithms import Operation
from ratelimits.exceptions import InvalidStore, RateLimitError, StoreUnavailable

from .base import Answer, Group
from .packing import is_log, log_key, unpack
from .redis import script
from .redis_alias import node_pool, seeds_of
from .redis_connections import own_pool
from .redis_nodes import Address, Connect, Map, Nodes, map_by
from .redis_parts import (
    ALL,
    Part,
    parts_of,
    shard_of,
    shard_of_slot,
    shards_of_version,
    stale,
    tag,
    together,
)


class Cluster:
    """Counts each caller in one hash slot, and asks the master that holds it.

    Its methods are those of Store, for RedisStore to hand on to.
    """

    def __init__(
        self,
        backend: BaseCache,
        connect: Connect,
        known: Map,
        seeds: Sequence[Address],
        then: Callable[[], None] | None = None,
    ) -> None:
        """`connect` gives the connections to a node, `then` is called when one is back.

        Raises InvalidStore if keys lose their tag.
        """
        self.backend = backend
        self.slots = {shard: self._slot(shard) for shard in ALL}
        self.nodes = Nodes(self.slots.values(), connect, self._trial, known, seeds, then)

    def _slot(self, shard: int) -> int:
        one, other = (key_slot(self.make_key(name, shard).encode()) for name in ("a", "b"))
        if one != other:
            raise InvalidStore(
                "The cache's KEY_FUNCTION does not keep the braces in keys, by which a Redis "
                "cluster knows what belongs together."
            )
        return one

    def _trial(self, slot: int) -> Sequence[Any]:
        shard = next(shard for shard in ALL if self.slots[shard] == slot)
        return "SET", self.make_key("trial", shard), "", "PX", 1000

    def make_key(self, key: str, shard: int) -> str:
        """A key with the alias's prefix and version. The braces choose its hash slot."""
        return str(self.backend.make_key(tag(shard) + key))

    def run(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        parts = self._parts(group)
        if len(parts) == 1:
            return self._run(operation, parts[0], costs, now)
        # Who can't have all of them does not begin.
        self.nodes.check(self.slots[part.shard] for part in parts)
        return self._together(operation, group, parts, costs, now)

    def _together(
        self,
        operation: Operation,
        group: Group,
        parts: Sequence[Part],
        costs: Sequence[int],
        now: int | None,
    ) -> Answer:
        """One part after the other. What comes after a refusal is not taken from."""
        takes = operation is Operation.TAKE
        answers: list[Answer] = []
        for part in parts:
            refused = takes and not all(answer.allowed for answer in answers)
            try:
                ask = self._look if refused else self._run
                answer = ask(operation, part, costs, now)
            except RateLimitError:
                if takes and not refused:
                    self._give_back(parts, answers, costs, now)
                raise
            if takes and not refused and not answer.allowed:
                answers = self._give_back(parts, answers, costs, now)
            if answer.stale is not None:
                return stale(group, part, answer)
            answers.append(answer)
        return together(group, parts, answers)

    def _look(
        self, operation: Operation, part: Part, costs: Sequence[int], now: int | None
    ) -> Answer:
        """What a part tells of a take that another one has refused."""
        answer = self._run(Operation.PEEK, part, costs, now)
        if answer.allowed:
            return answer
        # In refusing it writes what the wait that it tells depends on.
        answer = self._run(operation, part, costs, now)
        return self._give_back([part], [answer], costs, now)[0] if answer.allowed else answer

    def _give_back(
        self, parts: Sequence[Part], taken: Sequence[Answer], costs: Sequence[int], now: int | None
    ) -> list[Answer]:
        """Undo takes. The answers to them, with what is left now."""
        answers = []
        for part, answer in zip(parts, taken, strict=False):
            # A limit in shadow that lacked room took what there was, which is not known here.
            fits = dict(zip(part.places, answer.fitted, strict=True))
            back = [cost if fits.get(place) else 0 for place, cost in enumerate(costs)]
            # Whatever was edited since, it was taken.
            undo = part._replace(packed=part.packed._replace(versions=()))
            # What can't be given back stays taken: nobody gets more than there is.
            with suppress(RateLimitError):
                left = self._run(Operation.REFUND, undo, back, now)
                states = zip(left.states, answer.states, answer.fitted, strict=True)
                newer = tuple(new if fitted else old for new, old, fitted in states)
                answer = answer._replace(now=left.now, states=newer)
            answers.append(answer)
        return answers

    def _run(
        self, operation: Operation, part: Part, costs: Sequence[int], now: int | None
    ) -> Answer:
        text, digest = script()
        own = [costs[place] for place in part.places]
        arguments = part.packed.arguments(operation.value, own, now)
        try:
            reply = self.do(part.shard, "EVALSHA", digest, *arguments)
        except NoScriptError:
            reply = self.do(part.shard, "EVAL", text, *arguments)
        return unpack(reply, len(own))

    def _parts(self, group: Group) -> tuple[Part, ...]:
        parts = group.prepared.get(self)
        if not isinstance(parts, tuple):
            parts = group.prepared[self] = parts_of(group, self.make_key)
        return parts

    def do(self, shard: int, *command: Any) -> Any:
        """A command on keys of one shard. See Nodes.ask() for what it raises."""
        return self.nodes.ask(self.slots[shard], command)

    def versions(self, keys: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._version(key) for key in keys)

    def _version(self, key: str) -> str:
        shards = shards_of_version(key)
        if len(shards) > 1:
            held = self.nodes.one_slot_each()
            shards = [shard for shard in shards if self.slots[shard] in held]
        fault: StoreUnavailable | None = None
        for shard in shards:
            try:
                (value,) = self.do(shard, "MGET", self.make_key(key, shard))
            except StoreUnavailable as error:
                fault = error
            else:
                return "" if value is None else str(value.decode())
        raise fault or StoreUnavailable("The Redis cluster has no slots.")

    def set_versions(self, versions: Mapping[str, str], seconds: int) -> None:
        """To every shard that can be reached, even if one of them can't."""
        fault: RateLimitError | None = None
        for key, version in versions.items():
            for shard in shards_of_version(key):
                try:
                    self.do(shard, "SET", self.make_key(key, shard), version, "EX", seconds)
                except RateLimitError as error:
                    fault = error
        if fault is not None:
            raise fault

    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        """See RedisStore.reset()."""
        names = {(shard_of(subject), subject) for subject in subjects}
        for slot, ident in zip(group.slots, group.idents, strict=True):
            shard = shard_of_slot(slot)
            names.add((shard, slot.subject))
            if is_log(slot):
                names.add((shard, log_key(slot, ident)))
        for shard in sorted({shard for shard, _ in names}):
            keys = sorted(self.make_key(name, at) for at, name in names if at == shard)
            self.do(shard, "DEL", *keys)

    def close(self) -> None:
        self.nodes.close()


def find_cluster(
    backend: BaseCache, pool: Any, timeout: float, then: Callable[[], None] | None = None
) -> Cluster | None:
    """What counts on the cluster that the alias's server is a node of; None if it is none.

    Asks the server. Raises StoreUnavailable if it does not answer.
    """
    if isinstance(pool, SentinelConnectionPool):
        return None

    def connect(address: Address) -> redis.ConnectionPool:
        return own_pool(node_pool(pool, address), timeout)

    seeds = seeds_of(backend, pool)
    known = map_by(
        (address, connect(address) if place else pool) for place, address in enumerate(seeds)
    )
    return None if known is None else Cluster(backend, connect, known, seeds, then)
