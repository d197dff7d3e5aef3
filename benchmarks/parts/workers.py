"""More processes on one Redis: what they reach together, and what a take costs the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import workers
from benchmarks.bench import Bench
from benchmarks.table import WHOLE, LeftOut, Row, exact
from benchmarks.timing import Spread, spread
from tests.processes import run_processes

ROUNDS = 3
PROCESSES = 8


def rows(bench: Bench) -> Iterator[Row]:
    if bench.quick:
        raise LeftOut(WHOLE)
    seconds = bench.seconds / 10
    alone = 0.0
    for processes in (1, 2, 4, 8):
        ratios, rate = _rounds(bench, processes, seconds)
        alone = alone or rate
        text = f"{rate:,.0f} ({rate / alone:.2f} x one process)"
        against = "cache.get()s a second of as many"
        yield Row(f"takes a second, processes: {processes}", text, ratios, against)
    yield from _server(bench, seconds)


def _rounds(bench: Bench, processes: int, seconds: float) -> tuple[Spread, float]:
    rates, ratios = [], []
    for _ in range(ROUNDS):
        gets = _total(bench, workers.gets, processes, seconds)
        takes = _total(bench, workers.takes, processes, seconds, False)
        rates.append(takes / seconds)
        ratios.append(takes / gets)
    return spread(ratios), spread(rates).median


def _server(bench: Bench, seconds: float) -> Iterator[Row]:
    """What the server spends on each command, whoever sends it."""
    each: dict[str, float] = {}
    for name, target, rest in (("take", workers.takes, [True]), ("get", workers.gets, [])):
        before = _cpu(bench)
        total = _total(bench, target, PROCESSES, seconds, *rest)
        each[name] = (_cpu(bench) - before) / total
        if name == "take":
            what = f"takes a second, processes: {PROCESSES}, all for the same tenants"
            yield Row(what, f"{total / seconds:,.0f}")
    text = f"{each['take'] * 1e6:.1f} us, or {1 / each['take']:,.0f} a second and core"
    ratio = exact(each["take"] / each["get"])
    yield Row("Redis's own time for a take", text, ratio, "that for a cache.get()", note="1 limit")


def _total(
    bench: Bench, target: Callable[..., Any], processes: int, seconds: float, *rest: Any
) -> int:
    """How many calls processes make together."""
    env = bench.environment()
    return sum(run_processes(target, processes, seconds, *rest, env=env, timeout=120))


def _cpu(bench: Bench) -> float:
    """Seconds of a core that the server has used."""
    used = bench.server.client().info("cpu")
    return float(used["used_cpu_sys"] + used["used_cpu_user"])
