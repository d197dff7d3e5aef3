"""Our client in processes of its own that share a store: how worker.py is started and told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from django.core.management.base import CommandError

from demo_project.settings import BASE_DIR

WORKER = "demo_project.experiments.worker"


class Task(NamedTuple):
    """So many calls by each worker, within a rate. `caller` is the name and the credential."""

    url: str
    rate: str
    calls: int
    caller: str = ""


class Done(NamedTuple):
    """How many requests a worker sent, between two moments of the wall clock."""

    sent: int
    began: float
    ended: float


class Team(NamedTuple):
    """Processes that find the upstream in a database, and wait for their turn in a Redis."""

    database: Path
    redis_url: str

    def run(self, workers: int, task: Task) -> Done:
        """What they sent together. Raises CommandError if one of them fails."""
        task = task._replace(caller=f"caller-{uuid4()}")
        with ExitStack() as stack:
            team: list[subprocess.Popen[str]] = []
            # The first one adds the upstream, before there are others.
            for number in (1, workers - 1):
                new = [stack.enter_context(self._start(task)) for _ in range(number)]
                for worker in new:
                    _hear(worker)
                team += new
            for worker in team:
                _say(worker, "go")
            done = [Done(*json.loads(_hear(worker))) for worker in team]
        began, ended = min(one.began for one in done), max(one.ended for one in done)
        return Done(sum(one.sent for one in done), began, ended)

    def _start(self, task: Task) -> subprocess.Popen[str]:
        env = {**os.environ, "DEMO_DATABASE": str(self.database), "REDIS_URL": self.redis_url}
        env["DJANGO_SETTINGS_MODULE"] = "demo_project.settings"
        command = [sys.executable, "-m", WORKER, json.dumps(task)]
        return subprocess.Popen(
            command,
            cwd=BASE_DIR,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


def _say(worker: subprocess.Popen[str], line: str) -> None:
    assert worker.stdin is not None
    worker.stdin.write(f"{line}\n")
    worker.stdin.flush()


def _hear(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise CommandError(f"A worker ended by itself, with {worker.wait()}.")
    return line
