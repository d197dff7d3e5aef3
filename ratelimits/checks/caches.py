"""Checks of the cache whose backend decides what counts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured

from ratelimits.conf import conf
from ratelimits.exceptions import InvalidStore
from ratelimits.stores import backend_of, fitting, is_in_memory

from .base import is_on, is_production, meant, shown

REDIS = """
CACHES["ratelimits"] = {
    "BACKEND": "django_redis.cache.RedisCache",
    "LOCATION": "redis://127.0.0.1:6379/1",
}
and in RATELIMITS: "CACHE": "ratelimits\""""


def check_cache(**kwargs: Any) -> list[CheckMessage]:
    alias = conf.CACHE if is_on() else None
    if not isinstance(alias, str):
        return []
    if alias not in settings.CACHES:
        return [_missing(alias)]
    try:
        backend = backend_of(alias)
        if not isinstance(backend, DummyCache):
            store = fitting(backend, alias, conf.STORE_TIMEOUT)
            store.check()
    except (InvalidStore, ImproperlyConfigured, ImportError) as error:
        hint = f"Use Redis:{REDIS}"
        return [Error(f'RATELIMITS["CACHE"]: {error}', hint=hint, id="ratelimits.E011")]
    return _uncounted(alias, backend) if is_production() else []


def _missing(alias: str) -> CheckMessage:
    close = meant(alias, settings.CACHES)
    return Error(
        f'RATELIMITS["CACHE"] is {shown(alias)}, an alias that CACHES does not have.',
        hint=f'Did you mean "{close}"?' if close else f"Add it, for example:{REDIS}",
        id="ratelimits.E010",
    )


def _uncounted(alias: str, backend: BaseCache) -> list[CheckMessage]:
    """Caches that suffice while one develops."""
    name = f'The cache "{alias}" of RATELIMITS["CACHE"]'
    if isinstance(backend, DummyCache):
        text = f"{name} is a DummyCache, with which nothing is counted and nobody limited."
        return [Warning(text, hint=f"Use Redis:{REDIS}", id="ratelimits.W011")]
    if is_in_memory(backend):
        kind = "LocMemCache" if isinstance(backend, LocMemCache) else "fakeredis"
        text = (
            f"{name} is a {kind}, with which each process counts alone: callers get their "
            "limits once per process, and afresh at each restart."
        )
        hint = (
            f"Use Redis:{REDIS}\nOr, if there is one process only:\n"
            'SILENCED_SYSTEM_CHECKS = ["ratelimits.W010"]'
        )
        return [Warning(text, hint=hint, id="ratelimits.W010")]
    return []
