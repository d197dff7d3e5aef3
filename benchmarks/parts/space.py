"""What Redis keeps for tenants: used_memory before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks import peers
from benchmarks.bench import PLENTY, Bench
from benchmarks.filling import fill, groups, limits, sliding_log, take_once
from benchmarks.table import Goal, Row, exact, goal
from ratelimits.limits import Limit

GOALS = {1: 180, 3: 250}
LOGS = 10
ENTRY = 12


def rows(bench: Bench) -> Iterator[Row]:
    tenants = bench.count(100_000, 1000)
    for count, most in GOALS.items():
        used = _used(bench, partial(fill, limits(count), tenants)) / tenants
        aim = goal("at most", most, used, "bytes") if tenants == 100_000 else None
        plural = "s" if count > 1 else ""
        yield _row(f"a tenant with {count} limit{plural}", used, most, "the goal", tenants, aim)
    entries = bench.count(10_000, 200)
    used = _used(bench, lambda: _write_logs(sliding_log(entries), entries)) / (LOGS * entries)
    aim = goal("at most", ENTRY, used, "bytes") if entries == 10_000 else None
    yield _row("an entry of a sliding log", used, ENTRY, "the goal", LOGS * entries, aim)
    yield from _peers(bench, tenants)


def _peers(bench: Bench, tenants: int) -> Iterator[Row]:
    """One request of each of as many callers."""
    checks: dict[str, Callable[[int], object]] = {"DRF UserRateThrottle": _drf}
    if peers.is_here(peers.RATELIMIT):
        checks["django-ratelimit"] = _django_ratelimit
    for name, check in checks.items():
        used = _used(bench, partial(_each, check, tenants)) / tenants
        yield _row(f"{name}, after one request", used, GOALS[1], "our goal", tenants)


def _each(check: Callable[[int], object], callers: int) -> None:
    for pk in range(callers):
        check(pk)


def _drf(pk: int) -> object:
    view: Any = None
    return peers.DrfThrottle().allow_request(peers.request_of(pk), view)


def _django_ratelimit(pk: int) -> object:
    from django_ratelimit.core import get_usage

    request = peers.request_of(pk)._request
    return get_usage(request, group="space", key="user", rate=PLENTY, increment=True)


def _write_logs(limit: Limit, entries: int) -> None:
    for group in groups([limit], LOGS):
        for _ in range(entries):
            take_once(group, 1)


def _used(bench: Bench, fill_it: Callable[[], object]) -> float:
    client = bench.server.client()
    client.flushall()
    before = client.info("memory")["used_memory"]
    fill_it()
    return float(client.info("memory")["used_memory"] - before)


def _row(
    what: str, used: float, base: float, against: str, of: int, aim: Goal | None = None
) -> Row:
    note = f"used_memory, {of:,} of them"
    return Row(f"bytes: {what}", f"{used:,.1f}", exact(used / base), against, aim, note)
