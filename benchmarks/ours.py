"""What is measured of ratelimits itself, and what it is measured against."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

from django.core.cache import cache
from django_redis import get_redis_connection

from ratelimits.limiter import take

from .bench import SERVICE, tenants
from .timing import Subject

CACHE_GET = "one django-redis cache.get()"
SCRIPT = "one bare script call (redis-py)"


def cache_get(name: str = CACHE_GET) -> Subject:
    """Reading a present integer."""
    cache.set("benchmark", 12345, None)
    return Subject(name, lambda: cache.get("benchmark"))


def bare_script() -> Subject:
    client = get_redis_connection("default")
    digest = client.script_load("return 1")
    return Subject(SCRIPT, lambda: client.evalsha(digest, 0))


def taking(plan: str, scope: str = "", headers: bool = True) -> Callable[[], object]:
    """A take of the next tenant of a plan, with the headers that its answer would have."""
    turn = cycle(tenants(plan))
    if not headers:
        return lambda: take(next(turn), scope=scope)
    return lambda: take(next(turn), scope=scope).headers()


ONE = "take, 1 limit"
THREE = "take, 3 limits"
FIVE = "take, 4 limits and a service limit"


def takes() -> list[Subject]:
    return [
        Subject(ONE, taking("one")),
        Subject(THREE, taking("three")),
        Subject(FIVE, taking("four", SERVICE)),
    ]
