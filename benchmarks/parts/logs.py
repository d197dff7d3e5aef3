"""A caller with 1,000 requests in the window that its log covers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.cache import caches

from benchmarks import peers
from benchmarks.bench import Bench
from benchmarks.filling import groups, sliding_log, take_once
from benchmarks.ours import CACHE_GET, cache_get
from benchmarks.table import Row, timed
from benchmarks.timing import Subject
from ratelimits.stores import get_store

ENTRIES = 1000
OURS = f"store's share of a take, sliding log with {ENTRIES:,} entries"
DRF = f"DRF UserRateThrottle with {ENTRIES:,} entries"


class OneCaller(peers.DrfThrottle):
    def get_cache_key(self, request: Any, view: Any) -> str:
        return "long"


def rows(bench: Bench) -> Iterator[Row]:
    ours, drf = Log(), peers.drf(OneCaller)
    subjects = [cache_get(), Subject(OURS, ours.take, ours.filled), Subject(DRF, drf, _filled)]
    times = bench.race(subjects)
    yield timed(times, OURS, CACHE_GET, note="no catalog and no headers")
    yield timed(times, DRF, CACHE_GET)


@contextmanager
def _filled() -> Iterator[None]:
    caches["logs"].set("long", [time.time()] * ENTRIES, None)
    yield


class Log:
    """One tenant's sliding log in the store."""

    def __init__(self) -> None:
        store = get_store()
        assert store is not None
        self.store = store
        (self.group,) = groups([sliding_log(10 * ENTRIES)], 1)

    def take(self) -> None:
        take_once(self.group, 1)

    @contextmanager
    def filled(self) -> Iterator[None]:
        self.store.reset(self.group)
        for _ in range(ENTRIES):
            self.take()
        yield
