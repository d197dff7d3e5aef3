"""As many calls before a window's edge as after it: how many pass together?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ratelimits.algorithms import ALGORITHMS, Operation
from ratelimits.limits import SECOND, Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Group, Slot
from ratelimits.stores.memory import MemoryStore

from .http import Answer, Caller, sleep_until
from .patience import until_timely
from .server import demo_server
from .tables import Table

PATHS = {"/fixed": "fixed window", "/sliding": "sliding log", "/bucket": "token bucket"}
CALLS = 10
# Seconds before and after the edge at which the calls begin.
BEFORE, AFTER = 0.12, 0.01
# A bucket gains one unit in 0.1 s. In this time it gains two.
LONGEST = 0.28
# The limits of the minute, and a minute.
MINUTE = 29_000_000 * 60 * SECOND
FEW = 5


def run() -> list[Table]:
    with demo_server() as port:
        rows = [compare(port, path, name) for path, name in PATHS.items()]
    real = Table(
        "10 per second: 10 calls just before a second begins and 10 just after",
        rows,
        ["A fixed window starts again at its edge: twice its limit passes in no time."],
    )
    told = Table(
        "5 per minute: 5 calls at second 59 and 5 at second 60",
        [at_a_minute(name) for name in ALGORITHMS],
        ["By the same code, but with a clock that was set: nobody waited for the minute."],
    )
    return [real, told]


def compare(port: int, path: str, name: str) -> dict[str, Any]:
    passed = until_timely(lambda: around_an_edge(port, path), f"{2 * CALLS} calls around a second")
    return {"counted by": name, "path": path, "sent": 2 * CALLS, "passed": passed}


def around_an_edge(port: int, path: str) -> int | None:
    """How many passed, or None if some call came to the server too late, or the last one did."""
    with Caller(port) as caller:
        edge = int(time.time() + 2 * BEFORE) + 1.0
        sleep_until(edge - BEFORE)
        before = [caller.get(path) for _ in range(CALLS)]
        sleep_until(edge + AFTER)
        after = [caller.get(path) for _ in range(CALLS)]
    if not is_timely(before, after, edge):
        return None
    return sum(answer.passed for answer in (*before, *after))


def is_timely(before: Sequence[Answer], after: Sequence[Answer], edge: float) -> bool:
    """By the server's clock: on the intended side of the edge, and all within a short time."""
    if before[0].started < edge - 1 or before[-1].finished >= edge or after[0].started < edge:
        return False
    return after[-1].finished - before[0].started <= LONGEST


def at_a_minute(algorithm: str) -> dict[str, Any]:
    """The algorithm itself in the store of a single process, told what time it is."""
    store = MemoryStore()
    limit = Limit("calls", Rate.parse(f"{FEW}/m"), algorithm=algorithm)
    group = Group((Slot(limit, "caller"),))
    moments = [MINUTE + 59 * SECOND] * FEW + [MINUTE + 60 * SECOND] * FEW
    taken = [store.run(Operation.TAKE, group, [1], now).allowed for now in moments]
    return {"counted by": algorithm.replace("_", " "), "sent": len(taken), "passed": sum(taken)}
