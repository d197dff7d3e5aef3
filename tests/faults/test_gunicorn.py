"""The demo as gunicorn serves it: exact counts, and Redis that goes and comes back meanwhile."""

from __future__ import annotations

import json
import os
import signal
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.servers import RedisServer
from tests.waiting import wait_until

from .faults import FAULTS
from .plans import SMALL
from .serving import Answer, Gunicorn, busy, gunicorn
from .sockets import own_connections

WSGI = "demo_project.wsgi"
WORKERS = 4
# How long Redis is away. Long enough for a probe or two.
AWAY = 1.5
# How many pass meanwhile of a tenant who is let pass.
PASSED = 12
# More than production would wait, as others use the machine of the tests too.
TIMEOUT = 0.3


class Mode(NamedTuple):
    """A way to run workers. `taken` is what was taken from each limit before the first request."""

    options: tuple[str, ...]
    outages: tuple[str, ...]
    taken: int = 0


SOME = ("stopped",)
MORE = (*SOME, "out of memory", "killed", "a replica", "busy with a script", "too many clients",
        "a password that nobody told")  # fmt: skip
MODES = {
    "preload": Mode(("--preload", "tests.faults.wsgi"), SOME, 1),
    "sync": Mode((WSGI,), MORE),
    "threads": Mode(("--threads=8", WSGI), MORE),
    "gevent": Mode(("--worker-class=gevent", WSGI), MORE),
}
LONG = ("sync", "threads", "gevent")


@pytest.mark.parametrize(
    "name", ["preload", *(pytest.param(name, marks=pytest.mark.long) for name in LONG)]
)
def test_workers(name: str, server: RedisServer, prepared: Path) -> None:
    mode = MODES[name]
    options = {"STORE_TIMEOUT": TIMEOUT, "CATALOG_TTL": 5}
    with gunicorn(prepared, server.url, *mode.options, workers=WORKERS, **options) as served:
        exactly(served, server, SMALL - mode.taken)
        if mode.taken:
            unused_since_the_fork(served, server)
        for outage in mode.outages:
            survive(outage, served, server)
        without_database(served)


def exactly(served: Gunicorn, server: RedisServer, expected: int) -> None:
    """As many as there are units, whichever worker is asked, each over a connection of its own."""
    for _ in range(3):
        before = served.log().count("is away")
        answers = served.ask_at_once("bakery", SMALL + 50)
        if served.log().count("is away") == before:
            break
        # Somebody was too slow, on this busy machine. Once more, from the start.
        wait_until(lambda: served.log().count("is back") == served.log().count("is away"))
        server.flush()
        expected = SMALL
    assert Counter(answer.status for answer in answers) == {
        200: expected,
        429: SMALL + 50 - expected,
    }
    pids = [served.process.pid, *served.workers()]
    own = own_connections(pids, server.port)
    assert all(own[pid] for pid in {answer.worker for answer in answers}), own


def unused_since_the_fork(served: Gunicorn, server: RedisServer) -> None:
    """The connection that the master took over before it forked, and that its workers have too."""
    idle = [
        (int(client["age"]), int(client["idle"]))
        for client in server.client().client_list()
        if client["cmd"].startswith("eval")
    ]
    print(idle)
    assert max(idle)[0] - max(idle)[1] <= 1


def survive(outage: str, served: Gunicorn, server: RedisServer) -> None:
    """Nobody sees that it goes, except those who are to be denied."""
    with busy(served, "acme") as answers:
        time.sleep(0.3)
        with FAULTS[outage](server):
            went = time.time()
            time.sleep(0.2)
            go_on_in_three_ways(served)
            time.sleep(max(0.0, AWAY - (time.time() - went)))
            back = time.time()
        if outage == "stopped":
            again = charged_back(served)
        else:
            server.flush()
            wait_until(lambda: counts(server))
            again = time.time() - back
        away = [answer for answer in answers if went <= answer.asked < back]
    assert Counter(answer.status for answer in answers) == {200: len(answers)}
    waits = sorted(answer.took for answer in away)
    print(outage, len(waits), f"median {statistics.median(waits):.4f}", waits[-5:], again)
    assert len(waits) > 20
    assert statistics.median(waits) < 0.02
    # Each worker, or thread of it, waited once; the rest is what this machine is busy with.
    assert waits[-1] < 3


def charged_back(served: Gunicorn) -> float:
    """The store counts again, also what passed without it. For how long that took."""
    back = time.monotonic()
    passed, in_a_row = PASSED, 0
    while in_a_row < 4 * WORKERS:
        assert time.monotonic() - back < 20
        answer = served.ask("clinic")
        assert answer.status == 200
        passed += 1
        # While the store is away, nothing is published for it.
        in_a_row = in_a_row + 1 if "RateLimit" in answer.headers else 0
        again = time.monotonic() - back
        time.sleep(0 if in_a_row else 0.1)
    used = SMALL - int(answer.headers["RateLimit-Remaining"])
    # Of the calls that timed out nobody can tell.
    assert abs(used - passed) <= WORKERS, (used, passed)
    return again


def counts(server: RedisServer) -> bool:
    """Whether calls are counted there, and not only its probes answered."""
    return any(b"probe" not in key for key in server.client().scan_iter())


def go_on_in_three_ways(served: Gunicorn) -> None:
    small = served.ask_at_once("bakery", 2 * SMALL)
    passed = [answer for answer in small if answer.status == 200]
    # A worker has its part of the limit, or all of it before they have counted each other.
    assert len(passed) <= WORKERS * SMALL
    assert {answer.status for answer in small} - {200} == {429}
    for answer in served.ask_at_once("clinic", PASSED):
        assert answer.status == 200
        assert "RateLimit" not in answer.headers
    for answer in served.ask_at_once("anonymous", 12):
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert json.loads(answer.body)["violated-policies"] == []


def without_database(served: Gunicorn) -> None:
    """Gone, and made anew without tables. The last known limits stay.

    A worker that is started now knows none, unless its master does: STORE_FAILURE decides.
    """
    for path in served.database.parent.glob(f"{served.database.name}*"):
        path.unlink()
    answers: list[Answer] = []

    def is_noticed() -> bool:
        answers.extend(served.ask_at_once("acme", 24))
        return "can't be read from the database" in served.log()

    wait_until(is_noticed)
    answers += served.ask_at_once("acme", 24)
    assert Counter(answer.status for answer in answers) == {200: len(answers)}
    assert all("RateLimit" in answer.headers for answer in answers)
    os.kill(served.workers()[0], signal.SIGKILL)
    served.wait_for_workers(WORKERS)
    assert {answer.status for answer in served.ask_at_once("acme", 24)} == {200}
