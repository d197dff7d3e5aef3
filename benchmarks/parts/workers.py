"""More processes on one Redis, and what they reach together."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import workers
from benchmarks.bench import Bench
from benchmarks.table import WHOLE, LeftOut, Row
from benchmarks.timing import spread
from tests.processes import run_processes

TURNS = 5
GETS = "cache.get()s a second of as many"


def rows(bench: Bench) -> Iterator[Row]:
    if bench.quick:
        raise LeftOut(WHOLE)
    seconds = bench.seconds / 6
    alone = 0.0
    for processes in (1, 2, 4, 8):
        rate, row = _row(bench, processes, seconds, False)
        alone = alone or rate
        yield Row(row.what, f"{row.measured}, {rate / alone:.2f} x one", row.ratio, row.against)
    yield _row(bench, 8, seconds, True)[1]


def _row(bench: Bench, processes: int, seconds: float, shared: bool) -> tuple[float, Row]:
    arguments = (seconds, TURNS, shared)
    env = bench.environment()
    counts = run_processes(workers.turns, processes, *arguments, env=env, timeout=300)
    # By process, turn and kind; the first turn is for those that started late.
    takes = [sum(one[turn][0] for one in counts) / seconds for turn in range(1, TURNS)]
    gets = [sum(one[turn][1] for one in counts) / seconds for turn in range(1, TURNS)]
    rate = spread(takes).median
    what = f"takes a second, processes: {processes}{', the same tenants' if shared else ''}"
    ratio = spread([a / b for a, b in zip(takes, gets, strict=True)])
    return rate, Row(what, f"{rate:,.0f}", ratio, GETS)
