"""How a cache alias reaches Redis, read from its client without asking any server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import redis
from redis.cluster import RedisCluster, cleanup_kwargs
from redis.connection import UnixDomainSocketConnection, parse_url

from .redis_nodes import Address

# Options of the alias's client that are not for the connections of ours.
OF_THE_CLIENT = ("connection_pool", "connection_pool_class", "nodes_flag", "redis_connect_func")


def pool_of(backend: Any) -> Any:
    """A pool with the alias's address and credentials: that of its client, or of one node."""
    factory = getattr(getattr(backend, "client", None), "connection_factory", None)
    kind = getattr(factory, "redis_client_cls", None)
    if isinstance(kind, type) and issubclass(kind, RedisCluster):
        # To make its client would ask the cluster, for as long as its own timeouts allow.
        return _node_pool(*_cluster_options(backend, factory))
    client = _client_of(backend)
    if isinstance(client, RedisCluster):
        nodes = client.nodes_manager
        return _node_pool(nodes.startup_nodes.values(), dict(nodes.connection_kwargs))
    return client.connection_pool


def seeds_of(backend: Any, pool: Any) -> tuple[Address, ...]:
    """Where to ask for the map of a cluster: at the pool's address, then at all of LOCATION's."""
    found = [_address(pool.connection_kwargs)]
    for url in _urls(backend):
        try:
            found.append(_address(_parsed(url)))
        except ValueError:
            # Only the first must be one that this client can read.
            continue
    return tuple(dict.fromkeys(found))


def node_pool(pool: Any, address: Address) -> Any:
    """A pool like another one, to another node."""
    options = {name: value for name, value in pool.connection_kwargs.items() if name != "path"}
    kind = pool.connection_class
    if issubclass(kind, UnixDomainSocketConnection):
        kind = redis.Connection
    options.update(address._asdict())
    # Older clients have one that knows MOVED; since then all do.
    parser = getattr(redis.cluster, "ClusterParser", None)
    if parser is not None:
        options["parser_class"] = parser
    return redis.ConnectionPool(connection_class=kind, **options)


def _client_of(backend: Any) -> Any:
    """The client behind django-redis's backend, or Django's own."""
    if hasattr(backend, "client"):
        return backend.client.get_client(write=True)
    return backend._cache.get_client(None, write=True)


def _cluster_options(backend: Any, factory: Any) -> tuple[Iterable[Any], dict[str, Any]]:
    """Nodes to begin with, and the options of their connections, as a factory would give them."""
    options = factory.make_connection_params(_urls(backend)[0])
    options.update(getattr(factory, "redis_client_cls_kwargs", None) or {})
    url = options.pop("url", None)
    if url:
        options = {**_parsed(url), **options}
    return options.pop("startup_nodes", None) or (), options


def _node_pool(nodes: Iterable[Any], options: dict[str, Any]) -> Any:
    first = next(iter(nodes), None)
    options = {
        name: value
        for name, value in cleanup_kwargs(**options).items()  # type: ignore[no-untyped-call]
        if name not in OF_THE_CLIENT
    } | {
        "host": first.host if first else options.get("host") or "localhost",
        "port": int(first.port if first else options.get("port") or 6379),
    }
    if "connection_class" in options:
        # A URL has chosen it, and options for it that a client takes only with `ssl`.
        return redis.ConnectionPool(**options)
    return redis.Redis(**options).connection_pool


def _urls(backend: Any) -> Sequence[str]:
    """LOCATION, as one or several URLs."""
    urls = getattr(backend, "_servers", None) or getattr(backend, "_server", None) or ()
    return re.split("[;,]", urls) if isinstance(urls, str) else tuple(urls)


def _parsed(url: str) -> dict[str, Any]:
    return dict(parse_url(url))  # type: ignore[no-untyped-call]


def _address(options: Any) -> Address:
    return Address(options.get("host") or "localhost", int(options.get("port") or 6379))
