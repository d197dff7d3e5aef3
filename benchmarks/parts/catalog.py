"""A hundred thousand tenants that a process knows, and edits among them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

from django.db import connection

from benchmarks.bench import Bench
from benchmarks.ours import CACHE_GET, cache_get
from benchmarks.table import Row, exact, goal, timed
from benchmarks.timing import Subject
from ratelimits.catalog import Caller
from ratelimits.edits import shared
from ratelimits.limiter import take
from ratelimits.models import PlanLimit, Tenant, TenantLimit

AMONG = "take, one of the warm tenants, after an edit of another one"
LOOKED_AT = 2000


def rows(bench: Bench) -> Iterator[Row]:
    count = bench.count(100_000, 500)
    keys = [f"warm:{number}" for number in range(count)]
    Tenant.objects.bulk_create((Tenant(key=key) for key in keys), batch_size=5000)
    # To make them was an edit of each, which processes hear of for twice CATALOG_TTL.
    bench.server.flush()
    before = _memory()
    for key in keys:
        shared.load(Caller(key), "")
    grown = (_memory() - before) / count
    some = random.sample(keys, min(LOOKED_AT, count))
    note = f"{count:,} tenants"
    yield _row("a warm take", _queries(some), len(some), note)
    tenant = Tenant.objects.get(key=keys[0])
    TenantLimit.objects.create(tenant=tenant, name="own", rate="5/s")
    others = [key for key in some if key != keys[0]]
    yield _row("takes of the others after one tenant's edit", _queries(others), len(others), note)
    edited = _queries([keys[0]])
    yield Row("queries: the edited tenant's next take", str(edited), exact(edited), "one query")
    PlanLimit.objects.get(name="spent").save()
    reload = _queries(some)
    text = f"{reload} in {len(some):,} takes"
    yield Row("queries: after an edit of a plan", text, exact(reload / len(some)), "a take")
    if grown > 0 and not bench.quick:
        yield Row("memory of a process, for each tenant that it knows", f"{grown:,.0f} bytes")
    yield _time(bench, some)


def _time(bench: Bench, keys: list[str]) -> Row:
    turn = cycle(keys)
    subject = Subject(AMONG, lambda: take(next(turn)).headers())
    return timed(bench.race([cache_get(), subject]), AMONG, CACHE_GET)


def _queries(keys: list[str]) -> int:
    """How many queries the takes of these tenants make."""
    seen: list[str] = []

    def note(execute: Callable[..., object], sql: str, *rest: object) -> object:
        seen.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        for key in keys:
            take(key)
    return len(seen)


def _row(what: str, queries: int, takes: int, note: str) -> Row:
    aim = goal("exactly", 0, queries, "queries")
    text = f"{queries} in {takes:,} takes"
    return Row(f"queries: {what}", text, exact(queries / takes), "a take", aim, note)


def _memory() -> int:
    """Bytes that this process has in memory, as far as the system tells."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0
