"""What a limit adds to a request, from the environ of WSGI to the end of the response."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import cycle
from typing import Any

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.test import override_settings

from benchmarks import peers
from benchmarks.bench import CALLERS, Bench
from benchmarks.ours import CACHE_GET, cache_get
from benchmarks.table import Row, goal, microseconds, timed
from benchmarks.timing import Subject, Times, spread

ADDED = ("at most", 1.0)
GET = "a cache.get() in the view"
PLAN = "PlanRateThrottle"
# What is measured: the path of the view, that of the same view without a limit, the status.
OURS = {
    PLAN: ("/drf/limited", "/drf", 200),
    f"{PLAN}, refusing": ("/drf/spent", "/drf", 429),
    "@ratelimit(), the tenant's plan": ("/limited", "/plain", 200),
    "@ratelimit(rate), a limit in code": ("/limited-in-code", "/plain", 200),
    "RateLimitMiddleware, protecting a view": ("/protected", "/plain", 200),
}
PEERS = {
    "DRF UserRateThrottle": ("/drf/own", "/drf", 200),
    "DRF UserRateThrottle, refusing": ("/drf/own-spent", "/drf", 429),
    "django-smart-ratelimit DRF throttle": ("/drf/smart", "/drf", 200),
    "django-smart-ratelimit decorator": ("/peers/smart", "/plain", 200),
    "django-ratelimit decorator": ("/peers/ratelimit", "/plain", 200),
}
NEEDS = {"django-smart-ratelimit": peers.SMART, "django-ratelimit": peers.RATELIMIT}


def rows(bench: Bench) -> Iterator[Row]:
    theirs = {name: row for name, row in PEERS.items() if _is_here(name)}
    doors = {GET: ("/drf/cached", "/drf", 200), **OURS, **theirs}
    subjects = [cache_get(), *(Subject(path, _requests(path)) for path in ("/plain", "/drf"))]
    for name, (path, _, status) in doors.items():
        subjects.append(Subject(name, _requests(path, status), peers.emptied))
    times = bench.race(subjects)
    for path in ("/plain", "/drf"):
        yield timed(times, path, CACHE_GET, what=f"a request for {path}, no limit")
    for name, (_, without, _) in doors.items():
        aim = ADDED if name == PLAN else None
        note = "plan, tenant and headers included" if name in OURS else ""
        yield timed(times, name, CACHE_GET, aim, less=without, what=f"{name}: adds", note=note)
    yield _in_a_request(times)
    yield from peers.left_out()


def _in_a_request(times: Times) -> Row:
    """A request leaves less in the processor's caches than a loop: compare within requests."""
    plan, get, drf = (times.by_name[name] for name in (PLAN, GET, "/drf"))
    ratio = spread([(a - c) / (b - c) for a, b, c in zip(plan, get, drf, strict=True)])
    value = microseconds(times.of(PLAN).median - times.of("/drf").median)
    aim = goal(*ADDED, ratio.median)
    return Row(f"{PLAN}: adds", value, ratio, f"what {GET} adds", aim)


def _is_here(name: str) -> bool:
    return all(peers.is_here(module) for start, module in NEEDS.items() if name.startswith(start))


def _requests(path: str, status: int = 200) -> Callable[[], object]:
    """Requests of one caller after the other; of one alone if it has nothing left."""
    handler = _handler(path)
    turn = cycle(range(CALLERS if status == 200 else 1))
    seen: list[str] = []

    def call() -> None:
        response = handler(_environ(path, next(turn)), lambda line, fields: seen.append(line))
        b"".join(response)
        response.close()
        seen.clear()

    return call


def _handler(path: str) -> Any:
    """Django's own, with our middleware only where it is what is measured."""
    if path != "/protected":
        return WSGIHandler()
    ours = ["ratelimits.middleware.RateLimitMiddleware", *settings.MIDDLEWARE]
    with override_settings(MIDDLEWARE=ours):
        return WSGIHandler()


def _environ(path: str, caller: int) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "192.0.2.1",
        "HTTP_X_CALLER": str(caller),
        "wsgi.input": BytesIO(),
        "wsgi.url_scheme": "http",
    }
