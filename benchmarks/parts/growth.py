"""The cost as tenants grow: what a take needs, and what Redis keeps."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import cycle

from benchmarks.bench import Bench
from benchmarks.filling import fill, groups, limits, take_once
from benchmarks.ours import CACHE_GET, cache_get
from benchmarks.table import Row, exact, timed
from benchmarks.timing import Subject

SIZES = (1_000, 10_000, 100_000, 1_000_000)
LOOKED_AT = 1_000


def rows(bench: Bench) -> Iterator[Row]:
    client = bench.server.client()
    client.flushall()
    empty = client.info("memory")["used_memory"]
    there, first = 0, 0.0
    for size in SIZES[:2] if bench.quick else SIZES:
        fill(limits(1), size - there, there)
        there = size
        used = client.info("memory")["used_memory"] - empty
        first = first or used / size
        what = f"store's share of a take, among {size:,} tenants"
        times = bench.race([cache_get(), Subject(what, _takes(size))])
        yield timed(times, what, CACHE_GET, note="1 limit, no catalog and no headers")
        each = f"{used / 1e6:,.1f} MB, {used / size:.0f} bytes each"
        grown = exact(used / size / first)
        yield Row(f"memory of Redis, {size:,} tenants", each, grown, f"each of {SIZES[0]:,}")
    client.flushall()


def _takes(size: int) -> Callable[[], object]:
    """Takes of tenants from all over."""
    places = random.sample(range(size), min(size, LOOKED_AT))
    found = [next(groups(limits(1), 1, place)) for place in places]
    for group in found:
        take_once(group, 1)
    turn = cycle(found)
    return lambda: take_once(next(turn), 1)
