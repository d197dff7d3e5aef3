"""The demo as a process of its own, with a database of its own, for one experiment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from django.core.management.base import CommandError

from demo_project.settings import BASE_DIR

PATIENCE = 60.0


@contextmanager
def demo_server(redis_url: str = "", database: Path | None = None) -> Iterator[int]:
    """The port of a new demo, which counts in memory unless it is given a Redis.

    Its database is made where it is said to be, or goes with it. Raises CommandError if it does
    not start.
    """
    with TemporaryDirectory(prefix="ratelimits-") as directory:
        env = {**os.environ, "DEMO_DATABASE": str(database or Path(directory) / "demo.sqlite3")}
        env["REDIS_URL"] = redis_url
        command = [sys.executable, "manage.py", "demo", "--port", "0"]
        process = subprocess.Popen(
            command, cwd=BASE_DIR, env=env, stdout=subprocess.PIPE, text=True
        )
        try:
            yield _port(process)
        finally:
            stop(process)


def _port(process: subprocess.Popen[str]) -> int:
    """As the demo prints it, when it is ready."""
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/$", line.rstrip())
        if found:
            return int(found[1])
    raise CommandError("The demo did not start.")


def stop(process: subprocess.Popen[str]) -> None:
    """Ends the demo, which ends its own children first."""
    process.terminate()
    try:
        process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
