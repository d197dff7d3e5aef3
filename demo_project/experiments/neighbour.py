"""One noisy tenant and two quiet ones: with one bucket for all, and with one each."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from .http import Caller
from .server import demo_server
from .tables import Table

PATHS = {"/global": "one for all", "/bucket": "one each"}
QUIET = ("bakery", "clinic")
# The quiet ones call far less often than the 10 per second that they have.
CALLS, PAUSE = 10, 0.25
# Seconds that the noisy one has been calling when they begin.
AHEAD = 0.5


def run() -> list[Table]:
    with demo_server() as port:
        rows = [row for path in PATHS for row in compare(port, path)]
    note = "With one bucket for all, whoever asks most often gets whatever flows in."
    return [
        Table("10 per second: acme calls without a pause, the others now and then", rows, [note])
    ]


def compare(port: int, path: str) -> list[dict[str, Any]]:
    done = Event()
    with ThreadPoolExecutor(1 + len(QUIET)) as pool:
        noisy = pool.submit(be_noisy, port, path, done)
        time.sleep(AHEAD)
        quiet = [pool.submit(be_quiet, port, path, name) for name in QUIET]
        try:
            found = {name: future.result() for name, future in zip(QUIET, quiet, strict=True)}
        finally:
            done.set()
        found = {"acme": noisy.result(), **found}
    return [_row(PATHS[path], name, *counts) for name, counts in found.items()]


def _row(buckets: str, tenant: str, sent: int, passed: int) -> dict[str, Any]:
    lost = f"{100 * (sent - passed) / sent:.0f} %"
    return {"buckets": buckets, "tenant": tenant, "sent": sent, "passed": passed, "lost": lost}


def be_noisy(port: int, path: str, done: Event) -> tuple[int, int]:
    sent = passed = 0
    with Caller(port, "acme") as caller:
        while not done.is_set():
            passed += caller.get(path).passed
            sent += 1
    return sent, passed


def be_quiet(port: int, path: str, name: str) -> tuple[int, int]:
    passed = 0
    with Caller(port, name) as caller:
        for _ in range(CALLS):
            passed += caller.get(path).passed
            time.sleep(PAUSE)
    return CALLS, passed
