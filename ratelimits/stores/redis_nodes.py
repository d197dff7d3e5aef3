"""The masters of a Redis cluster: who holds a hash slot, and how it is asked."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import redis
from redis.exceptions import (
    AskError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    RedisError,
    TryAgainError,
)

from ratelimits.exceptions import PartUnavailable, StoreBusy, StoreError, StoreUnavailable

from .breaker import Breaker
from .packing import in_protocol
from .redis_connections import is_fault
from .redis_exchange import Connections

# How often one call is sent on from node to node. Who sends it on has not executed it.
MOST_REDIRECTS = 3


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


# What a node answers to CLUSTER SLOTS, and which node that was.
Map = tuple[Address, Sequence[Any]]
Connect = Callable[[Address], redis.ConnectionPool]


class Node:
    """One master. While it is away, only those whose slots it holds go without the store."""

    def __init__(
        self,
        address: Address,
        pool: redis.ConnectionPool,
        probe: Callable[[Node], None],
        then: Callable[[], None] | None,
    ) -> None:
        self.address = address
        self.pool = pool
        self.connections = Connections(pool)
        self.breaker = Breaker(lambda: probe(self), then, part=str(address))

    def check(self) -> None:
        """Raises PartUnavailable, without any I/O, while it is away."""
        try:
            self.breaker.check()
        except StoreUnavailable as error:
            raise PartUnavailable(str(error)) from None

    def send(self, command: Sequence[Any], asking: bool = False) -> Any:
        """Raises RedisError. `asking` is for a slot that this node is about to get."""
        first = in_protocol("ASKING") if asking else None
        return self.connections.exchange(in_protocol(*command), first)

    def failed(self, error: RedisError) -> StoreBusy | StoreError:
        """What its error means, to be raised. Opens the breaker if the node is away."""
        text = f"Redis at {self.address} can't count now: {error}"
        if isinstance(error, TryAgainError) or "slot not served" in str(error):
            # One slot on its way from node to node; the others here are fine.
            return StoreBusy(text)
        if not is_fault(error):
            return StoreError(f"Redis at {self.address} refused a command: {error}")
        fault = PartUnavailable(text)
        self.breaker.trip(fault)
        return fault


class Nodes:
    """Knows who holds each of the slots in use, and learns from those who know better."""

    def __init__(
        self,
        slots: Iterable[int],
        connect: Connect,
        trial: Callable[[int], Sequence[Any]],
        known: Map,
        seeds: Sequence[Address],
        then: Callable[[], None] | None = None,
    ) -> None:
        """`trial` makes a command that writes into a slot, `then` is called when a node is back.

        `seeds` may know who is there when nobody else does.
        """
        self._slots = sorted(set(slots))
        self._connect = connect
        self._trial = trial
        self._seeds = seeds
        self._then = then
        self._nodes: dict[Address, Node] = {}
        self._masters: Mapping[int, Address] = {}
        self._members: tuple[Address, ...] = ()
        self._learn(*known)

    def ask(self, slot: int, command: Sequence[Any]) -> Any:
        """Do a command on the keys of one slot, at most once.

        Raises NoScriptError, StoreError, or StoreBusy: PartUnavailable if its master is away.
        """
        node, asking = self._holder(slot), False
        for _ in range(MOST_REDIRECTS + 1):
            node.check()
            try:
                return node.send(command, asking)
            except AskError as redirect:
                asking = not isinstance(redirect, MovedError)
                node = self._node(Address(redirect.host or node.address.host, redirect.port))
                if not asking:
                    self._masters = {**self._masters, slot: node.address}
            except NoScriptError:
                raise
            except RedisError as error:
                raise node.failed(error) from error
        raise StoreBusy(f"Redis sends the hash slot {slot} around from node to node.")

    def check(self, slots: Iterable[int]) -> None:
        """Raises PartUnavailable, without any I/O, if a master of theirs is away."""
        for slot in slots:
            self._holder(slot).check()

    def one_slot_each(self) -> list[int]:
        """A slot of each master."""
        return list({address: slot for slot, address in self._masters.items()}.values())

    def pools(self) -> dict[str, redis.ConnectionPool]:
        """The connections to each master, by its address."""
        masters = dict.fromkeys(self._masters.values())
        return {str(address): self._node(address).pool for address in masters}

    def refresh(self) -> None:
        """Ask one who answers for the map. Raises StoreUnavailable if nobody does."""
        fault: RedisError | None = None
        for address in dict.fromkeys((*self._masters.values(), *self._members, *self._seeds)):
            try:
                return self._learn(address, slots_by(self._node(address).connections))
            except RedisError as error:
                fault = error
        raise StoreUnavailable(f"No node of the Redis cluster answers: {fault}")

    def close(self) -> None:
        for node in self._nodes.values():
            node.connections.close()

    def _holder(self, slot: int) -> Node:
        address = self._masters.get(slot)
        if address is None:
            # Whoever is asked knows better, or says that nobody serves it.
            address = next(iter(self._masters.values()), self._seeds[0])
        return self._node(address)

    def _node(self, address: Address) -> Node:
        node = self._nodes.get(address)
        if node is None:
            node = Node(address, self._connect(address), self._probe, self._then)
            node = self._nodes.setdefault(address, node)
        return node

    def _probe(self, node: Node) -> None:
        """Whether to ask a node again: if it does its work, or others do it by now."""
        self.refresh()
        for slot, address in self._masters.items():
            if address == node.address:
                try:
                    node.send(self._trial(slot))
                except RedisError as error:
                    raise StoreUnavailable(str(error)) from error
                return

    def _learn(self, told_by: Address, ranges: Sequence[Any]) -> None:
        masters: dict[int, Address] = {}
        members: list[Address] = []
        for start, end, *nodes in ranges:
            # A node that does not know its own name leaves it out.
            master, *replicas = [
                Address(
                    node[0].decode() if node[0] and node[0] != b"?" else told_by.host, int(node[1])
                )
                for node in nodes
            ]
            members += [master, *replicas]
            for place in range(bisect_left(self._slots, start), bisect_right(self._slots, end)):
                masters[self._slots[place]] = master
        # A replica may be all that is left of its shard, and know that it is the master now.
        self._masters, self._members = masters, tuple(dict.fromkeys(members))


def slots_by(connections: Connections) -> Sequence[Any]:
    """The map of a cluster as one of its nodes tells it. Raises RedisError."""
    ranges: Sequence[Any] = connections.exchange(in_protocol("CLUSTER", "SLOTS"))
    return ranges


def map_by(places: Iterable[tuple[Address, redis.ConnectionPool]]) -> Map | None:
    """The map by the first who answers; None if that is no node of a cluster.

    Raises StoreUnavailable if none of them answers.
    """
    fault: RedisError | None = None
    for address, pool in places:
        try:
            return address, slots_by(Connections(pool))
        except RedisError as error:
            # Who may not ask is told nothing, and goes on as with a single server.
            if isinstance(error, NoPermissionError) or not is_fault(error):
                return None
            fault = error
    raise StoreUnavailable(f"Redis can't count now: {fault}")
