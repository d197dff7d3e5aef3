"""Connections of one's own to the memcached servers behind a cache alias."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from django.core.cache.backends.base import BaseCache
from pymemcache import PooledClient
from pymemcache.client.base import normalize_server_spec
from pymemcache.client.rendezvous import RendezvousHash
from pymemcache.exceptions import (
    MemcacheError,
    MemcacheServerError,
    MemcacheUnexpectedCloseError,
)
from pymemcache.pool import ObjectPool

from ratelimits.exceptions import StoreError, StoreUnavailable

T = TypeVar("T")

# The alias's options that describe its servers rather than how to use them.
INHERITED = (
    "encoding",
    "key_prefix",
    "lock_generator",
    "pool_idle_timeout",
    "socket_keepalive",
    "socket_module",
    "tls_context",
)
# A connection that lay idle may have been closed by its server meanwhile.
CLOSED = (ConnectionResetError, BrokenPipeError, MemcacheUnexpectedCloseError)


class Item(NamedTuple):
    """A value, and the token that it is swapped with."""

    value: bytes
    token: Any


class Pool(ObjectPool):  # type: ignore[misc]
    """Closes a connection after whatever interrupted a command, be it no error but a signal.

    After a fault those that lie idle are closed too: they may have ended with it.
    """

    @contextmanager
    def get_and_release(self, destroy_on_fail: bool = False) -> Iterator[Any]:
        connected = self.get()
        try:
            yield connected
        except BaseException as error:
            self.destroy(connected)
            if isinstance(error, (OSError, MemcacheUnexpectedCloseError)):
                self.close_idle()
            raise
        self.release(connected)

    def close_idle(self) -> None:
        with self._lock:
            idle = list(self._free_objs)
            self._free_objs.clear()
        for connected in idle:
            connected.close()


class Servers:
    """A pool of connections for each server. Safe with threads and forks.

    A key stays on its server, come what may: one that is away is a fault, since all buckets
    on another one would be full. Methods raise StoreUnavailable, or StoreError.
    """

    def __init__(self, backend: BaseCache, timeout: float) -> None:
        self.timeout = timeout
        # PyMemcacheCache has no public way to tell.
        described: Any = backend
        self._addresses = [normalize_server_spec(spec) for spec in described.client_servers]
        options = described._options
        self._options = {name: options[name] for name in INHERITED if name in options}
        self._hasher = options.get("hasher", RendezvousHash)()
        for address in self._addresses:
            self._hasher.add_node(_name(address))
        self._clients: dict[str, PooledClient] = {}
        self._process = 0

    @property
    def clients(self) -> dict[str, PooledClient]:
        """By the name of their server; a process that was forked makes its own."""
        if self._process != os.getpid():
            self._clients = {_name(address): self._client(address) for address in self._addresses}
            self._process = os.getpid()
        return self._clients

    def _client(self, address: Any) -> PooledClient:
        client = PooledClient(
            address,
            connect_timeout=self.timeout,
            timeout=self.timeout,
            no_delay=True,
            default_noreply=False,
            allow_unicode_keys=True,
            **self._options,
        )
        client.client_pool = Pool(
            client._create_client,
            after_remove=lambda connected: connected.close(),
            idle_timeout=self._options.get("pool_idle_timeout", 0),
            lock_generator=self._options.get("lock_generator"),
        )
        return client

    def _of(self, key: str) -> PooledClient:
        return self.clients[self._hasher.get_node(key)]

    def gets(self, keys: Sequence[str]) -> dict[str, Item]:
        """The items there are, with one command for each server."""
        shares: dict[str, list[str]] = defaultdict(list)
        for key in keys:
            shares[self._hasher.get_node(key)].append(key)
        found: dict[str, Item] = {}
        with _faults():
            for name, share in shares.items():
                found.update(self._read(self.clients[name], share))
        return found

    def _read(self, client: PooledClient, keys: list[str]) -> Iterator[tuple[str, Item]]:
        """Reading is safe to repeat, unlike writing."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return ((key, Item(*found)) for key, found in client.gets_many(keys).items())
            except CLOSED:
                if time.monotonic() > deadline:
                    raise

    def add(self, key: str, value: bytes, seconds: int) -> bool:
        """False if there is an item already."""
        return self._ask(lambda: bool(self._of(key).add(key, value, seconds)))

    def cas(self, key: str, value: bytes, token: Any, seconds: int) -> bool:
        """False if the item was changed or removed since it was read."""
        return self._ask(lambda: bool(self._of(key).cas(key, value, token, seconds)))

    def set(self, key: str, value: bytes, seconds: int) -> None:
        self._ask(lambda: self._of(key).set(key, value, seconds))

    def delete(self, key: str) -> None:
        self._ask(lambda: self._of(key).delete(key))

    def stats(self) -> dict[str, Mapping[str, Any] | None]:
        """What each server says of itself, by its name; None for one that is away."""
        return {name: _stats(client) for name, client in self.clients.items()}

    def _ask(self, command: Callable[[], T]) -> T:
        with _faults():
            return command()

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def _name(address: Any) -> str:
    """What the alias's own client calls a server, so that keys are on the same one."""
    return address if isinstance(address, str) else "{}:{}".format(*address)


def _stats(client: PooledClient) -> Mapping[str, Any] | None:
    try:
        told = client.stats()
    except (OSError, MemcacheError):
        return None
    return {name.decode(): _plain(value) for name, value in told.items()}


def _plain(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except (OSError, MemcacheUnexpectedCloseError) as error:
        raise StoreUnavailable(f"memcached can't count now: {error}") from error
    except MemcacheServerError as error:
        if b"too large" in error.args[0]:
            text = "A caller's sliding logs are larger than memcached lets an item be (option -I)."
            raise StoreError(text) from error
        raise StoreUnavailable(f"memcached can't count now: {error}") from error
    except MemcacheError as error:
        raise StoreError(f"memcached refused a command: {error!r}") from error
