"""Which store holds the counts: it follows from the backend of the cache alias."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from django.apps import apps
from django.core.cache import InvalidCacheBackendError, caches
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.memcached import PyMemcacheCache
from django.core.cache.backends.redis import RedisCache
from django.core.signals import setting_changed

from ratelimits.conf import conf
from ratelimits.exceptions import InvalidStore, StoreUnavailable

from .base import Store
from .guarded import GuardedStore
from .memory import MemoryStore
from .missing import MissingStore

_stores: dict[tuple[str, float], Store | None] = {}
_patient: dict[tuple[str, float], Store] = {}
# Those that are not in use for a while.
_aside: list[tuple[dict[tuple[str, float], Store | None], dict[tuple[str, float], Store]]] = []
_making = Lock()

# Seconds to wait for the store for what no request waits for. Pages of people do.
PATIENCE = 0.3


def get_store() -> Store | None:
    """The store in force, guarded against its own faults; None for a dummy cache.

    If no store fits the alias, it is one that is always away.
    """
    key = (conf.CACHE, conf.STORE_TIMEOUT)
    try:
        return _stores[key]
    except KeyError:
        # Two threads must not count in two memories.
        with _making:
            if key not in _stores:
                _stores[key] = _store(*key)
            return _stores[key]


def _store(alias: str, timeout: float) -> Store | None:
    try:
        backend = backend_of(alias)
        if isinstance(backend, DummyCache):
            return None
        return GuardedStore(fitting(backend, alias, timeout))
    except (InvalidStore, ImportError) as error:
        return GuardedStore(MissingStore(str(error)))


def patient_store() -> Store:
    """The store in force over other connections, for what may take longer than a request waits.

    Its faults open no breaker by themselves, but one that is open is respected. Raises
    StoreUnavailable.
    """
    guarded = get_store()
    if not isinstance(guarded, GuardedStore):
        raise StoreUnavailable(f'The cache "{conf.CACHE}" is a DummyCache: nothing is counted.')
    guarded.breaker.check()
    if isinstance(guarded.store, MemoryStore | MissingStore):
        return guarded.store
    key = (conf.CACHE, max(PATIENCE, conf.STORE_TIMEOUT))
    try:
        return _patient[key]
    except KeyError:
        with _making:
            return _patient.setdefault(key, fitting(backend_of(key[0]), *key))


def counts_alone() -> bool:
    """Whether each process counts in its own memory, so that no other one can see it."""
    store = get_store()
    return isinstance(store, GuardedStore) and isinstance(store.store, MemoryStore)


def backend_of(alias: str) -> BaseCache:
    """The cache behind an alias. Raises InvalidStore if there is none."""
    try:
        return caches[alias]
    except (InvalidCacheBackendError, ImportError) as error:
        raise InvalidStore(f'CACHES has no usable alias "{alias}": {error}') from error


def fitting(backend: BaseCache, alias: str, timeout: float) -> Store:
    """The store that fits a backend. Raises InvalidStore if there is none."""
    if is_in_memory(backend):
        return MemoryStore()
    if is_redis(backend):
        from .redis import RedisStore

        return RedisStore(backend, timeout)
    if isinstance(backend, PyMemcacheCache):
        from .memcached import MemcachedStore

        return MemcachedStore(backend, timeout)
    if isinstance(backend, DatabaseCache):
        if not apps.is_installed("ratelimits"):
            raise InvalidStore(
                f'The cache alias "{alias}" is a DatabaseCache, for which counts have a table of '
                'their own. Add "ratelimits" to INSTALLED_APPS and run manage.py migrate.'
            )
        from .database import DatabaseStore

        return DatabaseStore(backend, timeout)
    kind = f"{type(backend).__module__}.{type(backend).__qualname__}"
    raise InvalidStore(
        f'The cache alias "{alias}" is a {kind}, on which nothing can be counted exactly. '
        "Use a backend of Redis, PyMemcacheCache, DatabaseCache, or LocMemCache for one process."
    )


def is_in_memory(cache: object) -> bool:
    """Whether a cache is in the memory of this process: a LocMemCache, or tests' fakeredis.

    That one counts by no script of ours, and needs none: nobody else sees what is in it.
    """
    return isinstance(cache, LocMemCache) or (is_redis(cache) and _is_fake(cache))


def _is_fake(backend: object) -> bool:
    from .redis_alias import pool_of

    try:
        kind = pool_of(backend).connection_class
    except Exception:
        # What makes no client is told of by who needs one.
        return False
    # Any callable may make connections.
    places = [getattr(each, "__module__", "") for each in getattr(kind, "__mro__", (kind,))]
    return any(place.partition(".")[0] == "fakeredis" for place in places)


def is_redis(backend: object) -> bool:
    """Django's own Redis backend or django-redis's."""
    return isinstance(backend, RedisCache) or _is_django_redis(backend)


def _is_django_redis(backend: object) -> bool:
    return any(
        f"{kind.__module__}.{kind.__qualname__}" == "django_redis.cache.RedisCache"
        for kind in type(backend).__mro__
    )


def forget_stores() -> None:
    """The next call makes the store anew."""
    for stores, patient in ((_stores, _patient), *_aside):
        _end(stores, patient)


@contextmanager
def other_stores() -> Iterator[None]:
    """Stores of their own meanwhile, for who counts by another clock."""
    aside = (dict(_stores), dict(_patient))
    _aside.append(aside)
    _stores.clear()
    _patient.clear()
    try:
        yield
    finally:
        for store in _stores.values():
            if isinstance(store, GuardedStore):
                store.store.close()
        _end(_stores, _patient)
        _aside.remove(aside)
        _stores.update(aside[0])
        _patient.update(aside[1])


def _end(
    stores: dict[tuple[str, float], Store | None], patient: dict[tuple[str, float], Store]
) -> None:
    for store in stores.values():
        if isinstance(store, GuardedStore):
            store.stop()
    stores.clear()
    for other in patient.values():
        other.close()
    patient.clear()


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "CACHES":
        forget_stores()


setting_changed.connect(_forget, dispatch_uid="ratelimits.stores")
