"""40 calls that all have to pass at 10 per second, by clients of three tempers and by ours."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from demo_project.serving import bundled_valkey

from .http import Answer, Caller
from .ours import Task, Team
from .server import demo_server
from .tables import Table

PATH = "/bucket"
CALLS = 40

# Returns how many calls it sent.
Client = Callable[[Caller], int]


def run() -> list[Table]:
    with TemporaryDirectory(prefix="ratelimits-") as directory, bundled_valkey() as redis_url:
        database = Path(directory) / "demo.sqlite3"
        with demo_server(database=database) as port:
            rows = [compare(port, name, client) for name, client in CLIENTS.items()]
            team = Team(database, redis_url)
            rows += [compare_ours(port, team, *of_ours) for of_ours in OURS]
    notes = [
        "None can be done before 3 s: 10 at once, and then 10 in each second. Ours begins 0.05 s",
        "later than it must (guard), since calls overtake each other on their way.",
    ]
    return [Table(f"{CALLS} calls at 10 per second", rows, notes)]


def compare(port: int, name: str, client: Client) -> dict[str, Any]:
    with Caller(port) as caller:
        started = time.monotonic()
        sent = client(caller)
        seconds = time.monotonic() - started
    return _row(name, sent, seconds)


def compare_ours(port: int, team: Team, name: str, workers: int, rate: str) -> dict[str, Any]:
    done = team.run(workers, Task(f"http://127.0.0.1:{port}", rate, CALLS // workers))
    return _row(name, done.sent, done.ended - done.began)


def _row(name: str, sent: int, seconds: float) -> dict[str, Any]:
    return {"client": name, "sent": sent, "refused": sent - CALLS, "seconds": round(seconds, 2)}


def blind(caller: Caller) -> int:
    """Tries again at once, until it passes."""
    sent = passed = 0
    while passed < CALLS:
        passed += caller.get(PATH).passed
        sent += 1
    return sent


def obedient(caller: Caller) -> int:
    """Sleeps for as long as a refusal says."""
    sent = passed = 0
    while passed < CALLS:
        answer = caller.get(PATH)
        sent += 1
        passed += answer.passed
        if not answer.passed:
            time.sleep(float(answer.headers["Retry-After"]))
    return sent


def proactive(caller: Caller) -> int:
    """Keeps a copy of the bucket that the first answer publishes, and never runs into its end."""
    answer = caller.get(PATH)
    quota, window = published(answer)
    sent, used, at = 1, 1.0, time.monotonic()
    passed = int(answer.passed)
    while passed < CALLS:
        used = max(0.0, used - (time.monotonic() - at) * quota / window)
        at = time.monotonic()
        if used + 1 > quota:
            time.sleep((used + 1 - quota) * window / quota)
            continue
        passed += caller.get(PATH).passed
        sent += 1
        # Counted when the answer is there: the server took it earlier, and has refilled since.
        used = max(0.0, used - (time.monotonic() - at) * quota / window) + 1
        at = time.monotonic()
    return sent


def published(answer: Answer) -> tuple[int, int]:
    """Quota and window in seconds of the only policy."""
    found = re.search(r";q=(\d+);w=(\d+)", answer.headers["RateLimit-Policy"])
    assert found is not None
    return int(found[1]), int(found[2])


CLIENTS: dict[str, Client] = {
    "blind": blind,
    "obedient (Retry-After)": obedient,
    "proactive (RateLimit-Policy)": proactive,
}

# With so many processes, and the limit that their upstream has in the admin.
OURS = [
    ("ours", 1, "10/s"),
    ("ours, 8 processes", 8, "10/s"),
    ("ours, 8 processes, set to 20/s", 8, "20/s"),
]
