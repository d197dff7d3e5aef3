"""A caller who has nothing left and keeps trying."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.test import override_settings

from benchmarks import peers
from benchmarks.bench import CALLERS, Bench
from benchmarks.ours import CACHE_GET, cache_get, taking
from benchmarks.settings import RATELIMITS
from benchmarks.table import Row, goal, microseconds, timed
from benchmarks.timing import Subject

KNOWN = "refused take, decided in the process"
BARE = "refused take, decided in the process, no headers"
ASKED = "refused take, the store asked (LOCAL_REFUSALS = 0)"
DRF = "DRF UserRateThrottle, refusing"


def rows(bench: Bench) -> Iterator[Row]:
    # A change of settings makes the limiter begin anew, so not between two batches.
    with override_settings(RATELIMITS={**RATELIMITS, "LOCAL_REFUSALS": 0}):
        asked = bench.race([cache_get(), Subject(ASKED, taking("spent"))])
    times = bench.race(
        [
            cache_get(),
            Subject(KNOWN, taking("spent")),
            Subject(BARE, taking("spent", headers=False)),
            Subject(DRF, peers.drf(peers.DrfSpent), spent),
        ]
    )
    yield timed(times, DRF, CACHE_GET)
    yield timed(asked, ASKED, CACHE_GET)
    yield timed(times, KNOWN, CACHE_GET)
    for name, aim in ((KNOWN, ("at least", 20.0)), (BARE, None)):
        cheaper = times.ratio(DRF, name)
        reached = goal(*aim, cheaper.median) if aim else None
        value = microseconds(times.of(name).median)
        yield Row(f"{name}: times cheaper", value, cheaper, DRF, reached)


@contextmanager
def spent() -> Iterator[None]:
    """A batch in which every caller of DRF's own throttle has nothing left."""
    with peers.emptied():
        first = peers.drf(peers.DrfSpent)
        for _ in range(CALLERS):
            first()
        yield
