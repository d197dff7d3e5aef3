"""One wait, written in four ways: what a client makes of it that expects seconds."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from typing import Any

from django.utils.http import parse_http_date

from demo_project.comparing import WAYS

from .http import Caller
from .server import demo_server
from .tables import Table

FIELDS = ("Retry-After", "X-RateLimit-Reset", "Retry-After-Ms")
# No wait is as long; a moment since 1970 is longer.
LONGEST = 10 * 365 * 86400


def run() -> list[Table]:
    with demo_server() as port, ThreadPoolExecutor(len(WAYS)) as pool:
        rows = list(pool.map(lambda way: compare(port, way), WAYS))
    note = (
        "Each waited as long as it read rightly, asked once more, and got the answer on the right."
    )
    title = "One wait of 3 seconds at most, written in four ways"
    return [Table(title, rows, [note], hidden=("naive seconds", "right seconds"))]


def compare(port: int, way: str) -> dict[str, Any]:
    with Caller(port) as caller:
        caller.get(f"/written/{way}")
        headers = caller.get(f"/written/{way}").headers
        wait = read_rightly(headers)
        time.sleep(wait)
        after = caller.get(f"/written/{way}").status
    name = next(name for name in FIELDS if name in headers)
    naive = read_naively(headers)
    return {
        "written as": f"{name}: {headers[name]}",
        "read naively": "not at all" if naive is None else _spoken(naive),
        "naive seconds": naive,
        "read rightly": _spoken(wait),
        "right seconds": wait,
        "answer then": after,
    }


def read_naively(headers: Message) -> float | None:
    """Whatever field there is, as a number of seconds."""
    value = next(headers[name] for name in FIELDS if name in headers)
    try:
        return float(value)
    except ValueError:
        return None


def read_rightly(headers: Message) -> float:
    """By what the field's name and the value's form mean; moments by the server's own clock."""
    if "Retry-After-Ms" in headers:
        return int(headers["Retry-After-Ms"]) / 1000
    now = parse_http_date(headers["Date"])
    if "Retry-After" in headers:
        value = headers["Retry-After"]
        return float(value) if value.isdecimal() else max(0.0, parse_http_date(value) - now)
    reset = int(headers["X-RateLimit-Reset"])
    return max(0.0, reset - now) if reset > LONGEST else float(reset)


def _spoken(seconds: float) -> str:
    for size, name in ((365 * 86400, "years"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{math.ceil(seconds * 10) / 10:g} s"
