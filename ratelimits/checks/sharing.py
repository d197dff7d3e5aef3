"""Checks of what the limits share with other caches on Redis."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.redis import RedisCache
from django.core.checks import CheckMessage, Warning
from django.core.exceptions import ImproperlyConfigured

from ratelimits.conf import conf
from ratelimits.exceptions import InvalidStore
from ratelimits.stores import backend_of, is_redis

from .base import is_on
from .databases import Database, database_of, entry_to_paste, locations

# What django-redis makes a pool of connections from, besides the URL.
POOL_OPTIONS = (
    "CONNECTION_FACTORY",
    "CONNECTION_POOL_CLASS",
    "CONNECTION_POOL_KWARGS",
    "PARSER_CLASS",
    "PASSWORD",
    "SOCKET_CONNECT_TIMEOUT",
    "SOCKET_TIMEOUT",
    "USERNAME",
)


def check_pool(**kwargs: Any) -> list[CheckMessage]:
    """django-redis keeps one pool of connections for a URL, whatever the options say."""
    alias = _own_alias()
    if alias is None or not _is_django_redis(alias):
        return []
    return [
        Warning(
            f'The cache aliases "{alias}" and "{other}" have the same URL but different '
            f"{', '.join(differing)}. django-redis keeps one pool of connections for a URL: "
            "the alias that is used first decides for both.",
            hint=f"Give them the same options, or a database each:\n{entry_to_paste(alias)}",
            id="ratelimits.W013",
        )
        for other in _others(alias)
        if set(locations(other)) & set(locations(alias))
        and _is_django_redis(other)
        and (differing := _differing(alias, other))
    ]


def check_shared_cache(**kwargs: Any) -> list[CheckMessage]:
    """Both Redis backends empty the whole database in clear(), whatever the prefix."""
    alias = _own_alias()
    if alias is None:
        return []
    sharing = [name for name in _others(alias) if _databases(name) & _databases(alias)]
    if alias != "default" and not sharing:
        return []
    whose = "the application's own cache" if alias == "default" else f'the alias "{sharing[0]}"'
    return [
        Warning(
            f'RATELIMITS["CACHE"], "{alias}", counts in a Redis database that {whose} uses too: '
            "its clear() would empty every bucket.",
            hint=f"Give the limits a database of their own:\n{entry_to_paste(alias)}",
            id="ratelimits.W012",
        )
    ]


def _own_alias() -> str | None:
    """The alias of the setting CACHE, if it is in use and a Redis."""
    alias = conf.CACHE if is_on() else None
    return alias if isinstance(alias, str) and _databases(alias) else None


def _others(alias: str) -> list[str]:
    return [name for name in settings.CACHES if name != alias]


def _differing(alias: str, other: str) -> list[str]:
    one, two = (settings.CACHES[name].get("OPTIONS", {}) for name in (alias, other))
    return [name for name in POOL_OPTIONS if one.get(name) != two.get(name)]


def _databases(alias: str) -> set[Database]:
    """The Redis databases behind an alias; none if it is no Redis."""
    backend = _backend(alias)
    if backend is None or not is_redis(backend):
        return set()
    return {database_of(url, alias) for url in locations(alias)}


def _is_django_redis(alias: str) -> bool:
    backend = _backend(alias)
    return backend is not None and is_redis(backend) and not isinstance(backend, RedisCache)


def _backend(alias: str) -> BaseCache | None:
    try:
        return backend_of(alias)
    # One that can't be made is told of by other checks.
    except (InvalidStore, ImproperlyConfigured):
        return None
