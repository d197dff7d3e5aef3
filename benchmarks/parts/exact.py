"""Processes that take at the same time from one bucket of 100, on every store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from benchmarks import workers
from benchmarks.bench import Bench
from benchmarks.table import Row, exact, goal
from tests.processes import run_processes
from tests.servers import MemcachedServer, PostgreSQLServer, find_postgresql
from tests.settings import database_caches, memcached_caches

PROCESSES = 8
BUCKET = 100
TRIES = 250
PATIENCE = 300

_tenants = count()


def rows(bench: Bench) -> Iterator[Row]:
    processes = bench.count(PROCESSES, 2)
    yield _admitted(bench, "Redis", processes, {})
    if bench.quick:
        return
    yield _admitted(bench, "Redis, clocks 2 s apart", 2, {}, seconds_apart=2)
    yield _admitted(bench, "database (SQLite)", processes, {"caches": database_caches()})
    yield from _memcached(bench, processes)
    yield from _postgresql(bench, processes)
    env = bench.environment()
    theirs = run_processes(workers.admitted_by_drf, processes, TRIES, env=env, timeout=PATIENCE)
    yield _row("DRF UserRateThrottle on Redis", processes, theirs, ours=False)


def _memcached(bench: Bench, processes: int) -> Iterator[Row]:
    binary = shutil.which("memcached")
    if binary is None:
        yield Row("admitted of 100, memcached: left out", note="no memcached on the PATH")
        return
    directory = bench.directory / "memcached"
    directory.mkdir()
    server = MemcachedServer(binary, directory)
    try:
        given = {"caches": memcached_caches(server.address)}
        yield _admitted(bench, "memcached", processes, given)
    finally:
        server.kill()


def _postgresql(bench: Bench, processes: int) -> Iterator[Row]:
    binary = find_postgresql()
    if binary is None:
        yield Row("admitted of 100, PostgreSQL: left out", note="no postgres on the PATH")
        return
    server = PostgreSQLServer(binary, bench.directory)
    try:
        given = {"caches": database_caches(), "database": server.settings()}
        run_processes(workers.prepare, 1, env=bench.environment(**given), timeout=PATIENCE)
        yield _admitted(bench, "database (PostgreSQL)", processes, given)
    finally:
        server.kill()


def _admitted(
    bench: Bench,
    store: str,
    processes: int,
    given: Mapping[str, Any],
    seconds_apart: float = 0,
) -> Row:
    env = bench.environment(**given)
    arguments = (f"hundred:{next(_tenants)}", TRIES, seconds_apart)
    allowed = run_processes(workers.admitted, processes, *arguments, env=env, timeout=PATIENCE)
    return _row(store, processes, allowed)


def _row(store: str, processes: int, allowed: list[int], ours: bool = True) -> Row:
    admitted, tried = sum(allowed), processes * TRIES
    aim = goal("exactly", BUCKET, admitted, "admitted") if ours else None
    return Row(
        f"admitted of {BUCKET} by {processes} processes, {store}",
        f"{admitted} of {tried:,} tries",
        exact(admitted / BUCKET),
        "what there is",
        aim,
    )
