"""Checks of what the limits share with other caches on memcached."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.cache.backends.memcached import BaseMemcachedCache, PyMemcacheCache
from django.core.checks import CheckMessage, Warning
from django.core.exceptions import ImproperlyConfigured

from ratelimits.conf import conf
from ratelimits.exceptions import InvalidStore
from ratelimits.stores import backend_of

from .base import is_on

HINT = """Start another memcached for the limits, for example on port 11212:
CACHES["ratelimits"] = {
    "BACKEND": "django.core.cache.backends.memcached.PyMemcacheCache",
    "LOCATION": "127.0.0.1:11212",
}
and in RATELIMITS: "CACHE": "ratelimits\""""


def check_shared_memcached(**kwargs: Any) -> list[CheckMessage]:
    """clear() empties a server, whatever the prefix, and a full one drops what is used least."""
    alias = conf.CACHE if is_on() else None
    own = _servers(alias, PyMemcacheCache) if isinstance(alias, str) else set()
    sharing = [name for name in settings.CACHES if name != alias and _servers(name) & own]
    if not own or (alias != "default" and not sharing):
        return []
    whose = "the application's own cache" if alias == "default" else f'the alias "{sharing[0]}"'
    return [
        Warning(
            f'RATELIMITS["CACHE"], "{alias}", counts in a memcached that {whose} uses too: '
            "its clear() would empty every bucket, and its items would push buckets out.",
            hint=HINT,
            id="ratelimits.W012",
        )
    ]


def _servers(alias: str, kind: type[BaseMemcachedCache] = BaseMemcachedCache) -> set[str]:
    """The memcached servers behind an alias; none if it is another kind of cache."""
    try:
        backend = backend_of(alias)
    # One that can't be made is told of by other checks.
    except (InvalidStore, ImproperlyConfigured):
        return set()
    return set(map(str, backend.client_servers)) if isinstance(backend, kind) else set()
