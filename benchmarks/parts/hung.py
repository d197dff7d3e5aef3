"""A server that is stopped, not closed: it accepts, and answers nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from django.test import override_settings

from benchmarks import peers
from benchmarks.bench import Bench
from benchmarks.ours import CACHE_GET, cache_get, taking
from benchmarks.settings import RATELIMITS
from benchmarks.table import Row, exact, goal, microseconds
from benchmarks.timing import Subject, spread
from tests.refusals.watching import commands

LATER = 500
# No longer than it may take until a probe has found the server.
PATIENCE = 30.0


def rows(bench: Bench) -> Iterator[Row]:
    defaults = ("STORE_TIMEOUT", "STORE_FAILURE")
    own = {name: value for name, value in RATELIMITS.items() if name not in defaults}
    with override_settings(RATELIMITS=own):
        take = taking("one")
        subject = Subject("healthy", take)
        healthy = bench.race([cache_get(), subject]).of(CACHE_GET).median
        yield from _ours(bench, take, healthy)
    if not bench.quick:
        yield _drf(bench, healthy)


def _ours(bench: Bench, take: Callable[[], object], base: float) -> Iterator[Row]:
    bench.server.stop()
    try:
        first = _timed(take)
        later = spread([_timed(take) for _ in range(LATER)])
    finally:
        bench.server.cont()
    start = time.monotonic()
    before = commands(bench.server)
    while commands(bench.server) == before and time.monotonic() < start + PATIENCE:
        take()
        time.sleep(0.01)
    back = time.monotonic() - start
    healthy = f"a healthy {CACHE_GET.removeprefix('one ')}"
    text = microseconds(first)
    aim = goal("at most", 100, first / 1000, "ms")
    yield Row("hung Redis: the first take", text, exact(first / base), healthy, aim)
    aim = goal("under", 0.2, later.median / 1000, "ms")
    text = f"{microseconds(later.median)} (3 of 4 under {microseconds(later.high)})"
    yield Row("hung Redis: later takes", text, exact(later.median / base), healthy, aim)
    aim = goal("at most", 2, back, "s")
    yield Row("hung Redis: counting in it again after", f"{back:.2f} s", None, "", aim)


def _drf(bench: Bench, base: float) -> Row:
    """DRF's own throttle over django-redis as it comes. Its timeout is that of the driver."""
    drf = peers.drf()
    drf()
    bench.server.stop()
    try:
        first = _timed(lambda: _swallowing(drf))
    finally:
        bench.server.cont()
    healthy = f"a healthy {CACHE_GET.removeprefix('one ')}"
    note = "each request; then it raises, which is a 500"
    what = "hung Redis: DRF UserRateThrottle"
    return Row(what, microseconds(first), exact(first / base), healthy, note=note)


def _swallowing(call: Callable[[], object]) -> None:
    from redis.exceptions import RedisError

    try:
        call()
    except RedisError:
        return


def _timed(call: Callable[[], object]) -> float:
    """Microseconds."""
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1000
