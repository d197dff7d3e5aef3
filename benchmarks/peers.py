"""What people use today, ready to be timed: one check of one caller, by each peer's own API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import cycle
from typing import Any

from django.core.cache import caches
from django.test import RequestFactory
from rest_framework.request import Request
from rest_framework.throttling import UserRateThrottle

from .bench import CALLERS, PLENTY
from .callers import Caller
from .settings import RATELIMIT_REDIS
from .table import Row
from .timing import Subject

RATELIMIT, SMART, LIMITS = "django_ratelimit", "django_smart_ratelimit", "limits"


def is_here(module: str) -> bool:
    return find_spec(module) is not None


def left_out() -> list[Row]:
    """A row for each peer that is not installed."""
    missing = [module for module in (RATELIMIT, SMART, LIMITS) if not is_here(module)]
    note = "not installed: pip install 'django-ratelimits[bench]'"
    return [Row(f"{module}: left out", note=note) for module in missing]


def request_of(pk: int) -> Request:
    """A request of a user, for the throttles of DRF and for all others."""
    request = Request(RequestFactory().get("/"))
    caller: Any = Caller(pk)
    request.user = request._request.user = caller
    return request


def requests() -> Iterator[Request]:
    """One request after another, each of the next caller."""
    return cycle([request_of(pk) for pk in range(CALLERS)])


@contextmanager
def emptied() -> Iterator[None]:
    """A batch that begins with DRF's logs empty: the longer they are, the slower it gets."""
    caches["logs"].clear()
    yield


class DrfThrottle(UserRateThrottle):
    """DRF's own."""

    rate: Any = PLENTY

    @property
    def cache(self) -> Any:  # type: ignore[override]
        return caches["logs"]


class DrfSpent(DrfThrottle):
    scope = "spent"
    rate = "1/d"


class DrfHundred(DrfThrottle):
    scope = "hundred"
    rate = "100/d"


def drf(throttle: type[UserRateThrottle] = DrfThrottle) -> Callable[[], bool]:
    turn = requests()
    view: Any = None

    def call() -> bool:
        return throttle().allow_request(next(turn), view)

    return call


def django_ratelimit() -> Callable[[], object]:
    from django_ratelimit.core import get_usage

    turn = requests()
    return lambda: get_usage(
        next(turn)._request, group="bench", key="user", rate=PLENTY, increment=True
    )


def smart_throttle(algorithm: str) -> type[Any]:
    from django_smart_ratelimit.integrations.drf import SmartRateLimitThrottle

    options = {"rate": PLENTY, "algorithm": algorithm}
    return type("SmartThrottle", (SmartRateLimitThrottle,), options)


def smart(algorithm: str) -> Callable[[], object]:
    throttle, turn = smart_throttle(algorithm), requests()
    return lambda: throttle().allow_request(next(turn), None)


def limits(strategy: str, with_stats: bool = False) -> Callable[[], object]:
    from limits import parse, storage, strategies

    limiter = getattr(strategies, strategy)(storage.RedisStorage(RATELIMIT_REDIS["url"]))
    item = parse("1000000/minute")
    turn = cycle([f"{strategy}:{number}" for number in range(CALLERS)])

    def call() -> object:
        key = next(turn)
        allowed = limiter.hit(item, key)
        return (allowed, limiter.get_window_stats(item, key)) if with_stats else allowed

    return call


def subjects() -> list[Subject]:
    """All that are here, each allowing what it is asked."""
    found = [Subject("DRF UserRateThrottle, its log short", drf(), emptied)]
    if is_here(RATELIMIT):
        found.append(Subject("django-ratelimit get_usage", django_ratelimit()))
    if is_here(SMART):
        for algorithm in ("sliding_window", "token_bucket"):
            name = f"django-smart-ratelimit DRF throttle, {algorithm}"
            found.append(Subject(name, smart(algorithm)))
    if is_here(LIMITS):
        for strategy in ("FixedWindowRateLimiter", "MovingWindowRateLimiter"):
            found.append(Subject(f"limits {strategy}.hit", limits(strategy)))
        call = limits("FixedWindowRateLimiter", with_stats=True)
        found.append(Subject("limits fixed window, hit and get_window_stats", call))
    return found
