"""What the processes do that a measurement starts; see tests/processes.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

from django.core.cache import cache
from django.core.management import call_command

from ratelimits.limiter import take

from . import peers
from .bench import CALLERS, make_rows


def prepare(index: int) -> None:
    """The tables and rows, in a database that has none."""
    call_command("migrate", verbosity=0)
    make_rows()


def admitted(index: int, key: str, count: int, seconds_apart: float) -> int:
    """How many of so many takes are allowed; each process has its clock so much further ahead."""
    set_clock_ahead(index * seconds_apart)
    return sum(take(key).allowed for _ in range(count))


def admitted_by_drf(index: int, count: int) -> int:
    """See admitted(), for one caller of DRF's own throttle."""
    view: Any = None
    request = peers.request_of(1)
    return sum(peers.DrfHundred().allow_request(request, view) for _ in range(count))


def set_clock_ahead(seconds: float) -> None:
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + int(seconds * 10**9)


def turns(index: int, seconds: float, count: int, shared: bool) -> list[tuple[int, int]]:
    """How many takes there are in so many seconds, and then how many reads; several times.

    All processes change at the same moments. The tenants are the same for all, or one's own.
    """
    start = time.monotonic()
    cache.set("benchmark", 12345, None)
    own = "one" if shared else f"worker-{index}"
    turn = cycle([f"{own}:{number}" for number in range(CALLERS)])
    found = []
    for number in range(count):
        first, second = start + (2 * number + 1) * seconds, start + (2 * number + 2) * seconds
        takes = _until(first, lambda: take(next(turn)).headers())
        found.append((takes, _until(second, lambda: cache.get("benchmark"))))
    return found


def _until(end: float, call: Callable[[], object]) -> int:
    count = 0
    while time.monotonic() < end:
        for _ in range(20):
            call()
        count += 20
    return count
