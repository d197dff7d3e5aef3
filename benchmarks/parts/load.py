"""Under load over HTTP: DRF views under gunicorn, async views under uvicorn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks import peers
from benchmarks.bench import Bench
from benchmarks.http_load import BY, Load, load
from benchmarks.serving import Gunicorn, Uvicorn, WebServer, serving
from benchmarks.table import LeftOut, Row, microseconds
from benchmarks.timing import spread

ROUNDS = 5
NO_LIMIT = "no limit"
DRF = {NO_LIMIT: "/drf", "PlanRateThrottle": "/drf/limited", "DRF UserRateThrottle": "/drf/own"}
ASYNC = {NO_LIMIT: "/async/plain", "@ratelimit()": "/async/limited"}


def rows(bench: Bench) -> Iterator[Row]:
    at_once = ((Gunicorn, DRF, (8,)), (Uvicorn, ASYNC, (100,) if bench.quick else (1, 100)))
    for kind, paths, numbers in at_once:
        try:
            with serving(bench, kind) as server:
                for connections in numbers:
                    yield from _compared(bench, server, paths, connections)
        except LeftOut as reason:
            yield Row(f"load, {kind.name}: left out", note=str(reason))


def _compared(
    bench: Bench, server: WebServer, paths: dict[str, str], connections: int
) -> Iterator[Row]:
    found: dict[str, list[Load]] = {name: [] for name in paths}
    seconds = max(1, round(bench.seconds / 3))
    # The first of several rounds is for the workers to load and to connect.
    for turn in range(bench.count(0, 1), bench.count(ROUNDS + 1, 2)):
        for name, path in paths.items():
            with peers.emptied():
                one = load(server.address, path, connections, seconds, bench.directory)
            if turn:
                found[name].append(one)
    for name, loads in found.items():
        if name != NO_LIMIT:
            yield from _rows(f"{server.name}, {connections} at once", name, loads, found[NO_LIMIT])


def _rows(where: str, name: str, loads: Sequence[Load], bases: Sequence[Load]) -> Iterator[Row]:
    base = "the same view without a limit"
    for percentile in loads[0].percentiles:
        times = [one.percentiles[percentile] for one in loads]
        without = [one.percentiles[percentile] for one in bases]
        ratio = spread([a / b for a, b in zip(times, without, strict=True)])
        what = f"{where}, {name}: p{percentile:g}"
        text = microseconds(spread(times).median)
        yield Row(what, text, ratio, base, note=BY)
    rates = spread([one.rate for one in loads])
    ratio = spread([a.rate / b.rate for a, b in zip(loads, bases, strict=True)])
    yield Row(f"{where}, {name}: requests a second", f"{rates.median:,.0f}", ratio, base, note=BY)
