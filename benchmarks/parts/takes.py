"""An allowed take with its headers, on Redis."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import peers
from benchmarks.bench import Bench
from benchmarks.ours import CACHE_GET, FIVE, ONE, SCRIPT, THREE, bare_script, cache_get, takes
from benchmarks.table import Row, exact, microseconds, timed

HEADERS = "headers built"
GOALS = {ONE: ("at most", 0.8), THREE: None, FIVE: ("at most", 1.0)}


def rows(bench: Bench) -> Iterator[Row]:
    others = peers.subjects()
    times = bench.race([cache_get(), bare_script(), *takes(), *others])
    base = times.of(CACHE_GET).median
    yield Row(CACHE_GET, microseconds(base), exact(1.0), CACHE_GET, note="the measure of the rest")
    yield timed(times, SCRIPT, CACHE_GET)
    for name, aim in GOALS.items():
        yield timed(times, name, CACHE_GET, aim, note=HEADERS)
    for name in GOALS:
        yield timed(times, name, SCRIPT, note=HEADERS)
    for peer in others:
        yield timed(times, peer.name, CACHE_GET, note="no plans, no headers")
    yield from peers.left_out()
