"""Every store there is, and a caller that asks one of them at times of the test's choosing."""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Mapping, Sequence
from itertools import count
from tempfile import mkdtemp
from typing import Any

from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections

from ratelimits.algorithms import Operation, State, run
from ratelimits.counting import outcomes_of
from ratelimits.limits import Decision, Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Answer, Group, Slot, Store
from ratelimits.stores.memcached import MemcachedStore
from ratelimits.stores.memory import MemoryStore
from ratelimits.stores.redis import RedisStore
from tests.servers import PostgreSQLServer

STORES = (
    "pure", "memory", "django-redis", "django", "valkey", "cluster", "memcached", "postgresql",
    "sqlite",
)  # fmt: skip
REAL = STORES[1:]
# Generous, since a test that is not about timeouts must not fail by one.
TIMEOUT = 10.0
SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
# A Wednesday noon: 1 July 2026, 12:00 UTC.
NOON = 1_782_907_200 * SECOND

_subjects = count()
_aliases = count()


class PureStore(Store):
    """The reference: the pure functions over a dictionary, and nothing else."""

    def __init__(self) -> None:
        self.states: dict[tuple[str, bytes], tuple[str, State]] = {}

    def run(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        assert now is not None, "the pure functions have no clock"
        asks = group.asks(costs)
        slots = list(zip(group.slots, group.idents, strict=True))
        result = run(operation, asks, [self._stored(slot, ident) for slot, ident in slots], now)
        if operation is not Operation.PEEK:
            for (slot, ident), state in zip(slots, result.states, strict=True):
                self.states[slot.subject, ident] = (slot.limit.algorithm, state)
        condensed = tuple(
            ask.algorithm.condense(state, ask.terms, ask.cost)
            for ask, state in zip(asks, result.states, strict=True)
        )
        return Answer(now, result.allowed, condensed, result.fitted)

    def _stored(self, slot: Slot, ident: bytes) -> State | None:
        algorithm, state = self.states.get((slot.subject, ident), ("", None))
        return state if algorithm == slot.limit.algorithm else None

    def versions(self, keys: Sequence[str]) -> tuple[str, ...]:
        raise NotImplementedError

    def set_versions(self, versions: Mapping[str, str], seconds: int) -> None:
        raise NotImplementedError

    def count_processes(self, ident: str, seconds: int) -> int:
        raise NotImplementedError

    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        raise NotImplementedError


def redis_store(url: str, backend: str = "django-redis", **params: Any) -> RedisStore:
    """A store over a cache backend that is made here, not by CACHES."""
    if backend == "django":
        from django.core.cache.backends.redis import RedisCache

        return RedisStore(RedisCache(url, params), TIMEOUT)
    from django_redis.cache import RedisCache as DjangoRedisCache

    return RedisStore(DjangoRedisCache(url, params), TIMEOUT)


def memcached_store(
    address: str | list[str], timeout: float = TIMEOUT, **options: Any
) -> MemcachedStore:
    from django.core.cache.backends.memcached import PyMemcacheCache

    return MemcachedStore(PyMemcacheCache(address, {"OPTIONS": options}), timeout)


def postgresql_store(server: PostgreSQLServer, timeout: float = TIMEOUT, **options: Any) -> Any:
    store = database_store(server.settings(**options), timeout)
    if not server.is_migrated():
        call_command("migrate", database=store.own.alias, verbosity=0)
        connections[store.own.alias].close()
    return store


def sqlite_store(timeout: float = TIMEOUT) -> Any:
    folder = mkdtemp(prefix="ratelimits-sqlite-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    name = f"{folder}/project.sqlite3"
    return database_store({"ENGINE": "django.db.backends.sqlite3", "NAME": name}, timeout)


def database_store(settings: Mapping[str, Any], timeout: float) -> Any:
    """A store over a database that DATABASES does not have. Ended by close()."""
    from django.core.cache.backends.db import DatabaseCache

    from ratelimits.stores.database import DatabaseStore
    from ratelimits.stores.database_connections import OwnConnections

    alias = f"counts{next(_aliases)}"
    # With Django's defaults for what is not given.
    entries = {DEFAULT_DB_ALIAS: {}, alias: dict(settings)}
    connections.settings[alias] = connections.configure_settings(entries)[alias]
    store = DatabaseStore(DatabaseCache("not this table", {}), timeout)
    store.own = OwnConnections(alias, timeout)
    return store


def sql(store: Any, query: str, *parameters: Any) -> list[Any]:
    """What the store's own connections see."""
    with store.own.lent() as connection, connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return list(cursor.fetchall()) if cursor.description else []


def make_store(name: str, start_server: Any) -> Store:
    """A store by its name in STORES, with its server running."""
    if name == "pure":
        return PureStore()
    if name == "memory":
        return MemoryStore()
    if name == "memcached":
        return memcached_store(start_server("memcached").address)
    if name == "sqlite":
        return sqlite_store()
    if name == "postgresql":
        return postgresql_store(start_server("postgresql"))
    server = start_server(name if name in ("valkey", "cluster") else "redis")
    return redis_store(server.url, "django" if name == "django" else "django-redis")


def close(store: Store) -> None:
    """End its connections, which would only be missed when the garbage is collected."""
    if isinstance(store, RedisStore):
        store.close()
    elif isinstance(store, MemcachedStore):
        store.servers.close()
    elif hasattr(store, "own"):
        store.own.close()
        connections[store.own.alias].close()
        del connections[store.own.alias], connections.settings[store.own.alias]


def new_subject() -> str:
    """A caller nobody has seen before."""
    return f"subject-{next(_subjects)}"


def limit(rate: str, name: str = "limit", **options: Any) -> Limit:
    return Limit(name, Rate.parse(rate), **options)


class Calls:
    """What one caller asks of one store. Times are microseconds; None is the store's clock."""

    def __init__(self, store: Store, *limits: Limit, subject: str = "") -> None:
        self.store = store
        self.subject = subject or new_subject()
        self.limits = {limit.name: limit for limit in limits}

    def edit(self, *limits: Limit) -> None:
        """The limits of these names are these from now on."""
        self.limits.update({limit.name: limit for limit in limits})

    @property
    def group(self) -> Group:
        return Group(tuple(Slot(limit, self.subject) for limit in self.limits.values()))

    def answer(self, operation: Operation, cost: int, at: int | None) -> Answer:
        return self.store.run(operation, self.group, [cost] * len(self.limits), at)

    def do(self, operation: Operation, cost: int = 1, at: int | None = NOON) -> Decision:
        return self.told(operation, cost, self.answer(operation, cost, at))

    def told(self, operation: Operation, cost: int, answer: Answer) -> Decision:
        """What a caller is told of an answer."""
        costs = [cost] * len(self.limits)
        decision = Decision(tuple(outcomes_of(operation, self.group, costs, answer)), cost)
        assert decision.allowed == answer.allowed
        return decision

    def take(self, cost: int = 1, at: int | None = NOON) -> Decision:
        return self.do(Operation.TAKE, cost, at)

    def peek(self, cost: int = 1, at: int | None = NOON) -> Decision:
        return self.do(Operation.PEEK, cost, at)

    def charge(self, cost: int, at: int | None = NOON) -> Decision:
        return self.do(Operation.CHARGE, cost, at)

    def refund(self, cost: int, at: int | None = NOON) -> Decision:
        return self.do(Operation.REFUND, cost, at)


def left(decision: Decision) -> dict[str, int]:
    """What remains of each limit, by name."""
    return {outcome.name: outcome.remaining for outcome in decision.outcomes}
