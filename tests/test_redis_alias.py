"""All the ways in which projects tell Django's cache about a cluster, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from django.core.cache.backends.redis import RedisCache as DjangoCache
from django.core.cache.backends.redis import RedisCacheClient
from django_redis.cache import RedisCache
from django_redis.pool import ConnectionFactory
from redis.cluster import ClusterNode
from redis.cluster import RedisCluster as Client
from redis.crc import key_slot

from ratelimits.exceptions import InvalidStore, StoreUnavailable
from ratelimits.stores.redis import RedisStore
from ratelimits.stores.redis_alias import pool_of, seeds_of
from tests.clusters import RedisCluster
from tests.conformance.stores import TIMEOUT, Calls, close, limit, redis_store
from tests.servers import RedisServer, free_port

FACTORY = f"{__name__}.ClusterFactory"
CLUSTER_CLIENT = {"REDIS_CLIENT_CLASS": "redis.cluster.RedisCluster"}


class ClusterFactory(ConnectionFactory):  # type: ignore[misc]
    """What the users of django-redis write for it."""

    def connect(self, url: str) -> Any:
        return Client.from_url(url, **self.redis_client_cls_kwargs)


class HidingFactory(ConnectionFactory):  # type: ignore[misc]
    """One that tells its client class to nobody."""

    def connect(self, url: str) -> Any:
        return Client.from_url(url)


class OwnClient(RedisCacheClient):
    def get_client(self, key: Any = None, *, write: bool = False) -> Any:
        return Client.from_url(self._servers[0])  # type: ignore[attr-defined]


class OwnCache(DjangoCache):
    def __init__(self, server: Any, params: Any) -> None:
        super().__init__(server, params)
        self._class = OwnClient


def django_redis(location: Any, **options: Any) -> RedisCache:
    return RedisCache(location, {"OPTIONS": options})


WAYS: dict[str, Callable[[RedisCluster], Any]] = {
    "an ordinary alias": lambda cluster: django_redis(cluster.url),
    "Django's own": lambda cluster: DjangoCache(cluster.url, {}),
    "several nodes": lambda cluster: django_redis([node.url for node in cluster.nodes]),
    "client class": lambda cluster: django_redis(
        cluster.url, **CLUSTER_CLIENT, CONNECTION_FACTORY=FACTORY
    ),
    "startup nodes": lambda cluster: django_redis(
        "redis://cluster",
        **CLUSTER_CLIENT,
        REDIS_CLIENT_KWARGS={
            "startup_nodes": [ClusterNode("127.0.0.1", node.port) for node in cluster.nodes]
        },
    ),
    "own factory": lambda cluster: django_redis(
        cluster.url, CONNECTION_FACTORY=f"{__name__}.HidingFactory"
    ),
    "own backend": lambda cluster: OwnCache(cluster.url, {}),
}


@pytest.fixture
def stored() -> Iterator[Callable[[Any], RedisStore]]:
    stores = []

    def store_of(backend: Any) -> RedisStore:
        stores.append(RedisStore(backend, TIMEOUT))
        return stores[-1]

    yield store_of
    for store in stores:
        close(store)


@pytest.mark.parametrize("way", WAYS)
def test_each_way_counts_on_all_masters(
    way: str, redis_cluster: RedisCluster, stored: Callable[[Any], RedisStore]
) -> None:
    backend = WAYS[way](redis_cluster)
    store = stored(backend)
    for number in range(30):
        assert Calls(store, limit("9/d"), subject=f"subject{number}").take().allowed
    assert store.cluster is not None
    counts = [node.client().dbsize() for node in redis_cluster.nodes]
    assert sum(counts) == 30
    assert min(counts) > 0
    # They all count in the same buckets.
    other = stored(django_redis(redis_cluster.urls))
    for number in range(30):
        calls = Calls(other, limit("9/d"), subject=f"subject{number}")
        assert calls.take().outcomes[0].remaining == 7


def test_our_connections_have_our_timeouts(redis_cluster: RedisCluster) -> None:
    for way in ("an ordinary alias", "client class", "startup nodes"):
        store = RedisStore(WAYS[way](redis_cluster), 0.75)
        assert store.cluster is not None
        store.versions(["any"])
        for node in store.cluster.nodes._nodes.values():
            kwargs = node.pool.connection_kwargs
            assert (kwargs["socket_timeout"], kwargs["socket_connect_timeout"]) == (0.75, 0.75)
            assert kwargs["retry"].get_retries() == 0
        close(store)


def test_a_single_server_is_no_cluster(redis_like: RedisServer) -> None:
    """And is asked once only. Its keys are called as ever."""
    store = redis_store(redis_like.url)
    asked = redis_like.client().info("commandstats")
    for _ in range(5):
        Calls(store, limit("9/d"), subject="acme").take()
    stats = redis_like.client().info("commandstats")
    before = asked.get("cmdstat_cluster|slots", {}).get("calls", 0)
    assert stats["cmdstat_cluster|slots"]["calls"] == before + 1
    assert store.cluster is None
    assert list(redis_like.client().scan_iter()) == [b":1:{rl}acme"]
    close(store)


def test_no_server_is_asked_what_the_settings_say() -> None:
    """As manage.py check does, where there may be none."""
    nowhere = f"redis://user:secret@127.0.0.1:{free_port()}/0"
    for options in ({}, CLUSTER_CLIENT, {**CLUSTER_CLIENT, "CONNECTION_FACTORY": FACTORY}):
        store = RedisStore(django_redis(nowhere, **options), 0.2)
        store.check()
        kwargs = store.client.connection_pool.connection_kwargs
        assert (kwargs["username"], kwargs["password"]) == ("user", "secret")
        with pytest.raises(StoreUnavailable):
            store.versions(["any"])


def test_tls_and_credentials_are_those_of_the_alias() -> None:
    options = {**CLUSTER_CLIENT, "CONNECTION_FACTORY": FACTORY, "PASSWORD": "secret"}
    pool = pool_of(django_redis("rediss://cluster.example:7000/0?ssl_ca_certs=ca.pem", **options))
    assert pool.connection_class is redis.SSLConnection
    kwargs = pool.connection_kwargs
    assert (kwargs["host"], kwargs["port"]) == ("cluster.example", 7000)
    assert (kwargs["password"], kwargs["ssl_ca_certs"]) == ("secret", "ca.pem")
    given = {"host": "cluster.example", "port": 7000, "ssl": True, "password": "secret"}
    pool = pool_of(django_redis("redis://any", **CLUSTER_CLIENT, REDIS_CLIENT_KWARGS=given))
    assert issubclass(pool.connection_class, redis.SSLConnection)
    assert pool.connection_kwargs["password"] == "secret"


def test_all_of_location_is_where_to_ask() -> None:
    backend = django_redis("redis://a:1/0,redis://b:2/0,not an address,redis://a:1/0")
    assert [str(seed) for seed in seeds_of(backend, pool_of(backend))] == ["a:1", "b:2"]
    own = DjangoCache(["redis://a:1", "redis://b"], {})
    assert [str(seed) for seed in seeds_of(own, pool_of(own))] == ["a:1", "b:6379"]


def test_one_node_that_is_away_does_not_hide_the_others(
    redis_cluster: RedisCluster, stored: Callable[[Any], RedisStore]
) -> None:
    away = f"redis://127.0.0.1:{free_port()}"
    store = stored(django_redis([away, redis_cluster.url]))
    assert Calls(store, limit("9/d")).take().allowed


def lowered(key: str, prefix: str, version: int) -> str:
    return "".join(character for character in key if character not in "{}")


def test_a_key_function_must_keep_the_braces(redis_cluster: RedisCluster) -> None:
    backend = RedisCache(redis_cluster.url, {"KEY_FUNCTION": lowered})
    store = RedisStore(backend, TIMEOUT)
    with pytest.raises(InvalidStore, match="braces"):
        Calls(store, limit("9/d")).take()
    store.close()


def test_a_prefix_with_braces_keeps_all_in_its_slot(redis_cluster: RedisCluster) -> None:
    store = redis_store(redis_cluster.url, KEY_PREFIX="{mine}")
    each, everyone = limit("9/d"), limit("9/d", "all", per="everyone")
    assert Calls(store, each, everyone).take().allowed
    store.set_versions({"plans": "v"}, 60)
    assert {key_slot(key) for key in redis_cluster.names()} == {key_slot(b"mine")}
    close(store)
