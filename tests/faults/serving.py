"""The demo as gunicorn serves it in production, and callers who keep it busy."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from demo_project.serving import HOST, listen
from demo_project.tenants import KEYS

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 60


class Answer(NamedTuple):
    """One answer, when it was asked for, and for how long the worker had it (in seconds)."""

    status: int
    headers: dict[str, str]
    body: str
    asked: float
    took: float

    @property
    def worker(self) -> int:
        return int(self.headers["X-Demo-Worker"])


def ask(port: int, tenant: str, path: str = "/api/version", address: str = "") -> Answer:
    """One request over a connection of its own, so that any worker may answer."""
    asked = time.time()
    connection = HTTPConnection(HOST, port, timeout=PATIENCE)
    sent = {"X-API-Key": KEYS[tenant], **({"X-Forwarded-For": address} if address else {})}
    try:
        connection.request("GET", path, headers=sent)
        response = connection.getresponse()
        body = response.read().decode()
    finally:
        connection.close()
    headers = dict(response.getheaders())
    started, ended = map(float, headers["X-Demo-Clock"].split())
    return Answer(response.status, headers, body, asked, ended - started)


def environment(database: Path, redis_url: str, **ratelimits: Any) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.faults.demo_settings",
        "DEMO_DATABASE": str(database),
        "DEMO_RATELIMITS": json.dumps(ratelimits),
        "REDIS_URL": redis_url,
    }


PREPARE = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from tests.faults.plans import create; create()
"""


def prepare(folder: Path) -> Path:
    """A database of the demo's with the tenants of these tests, to be copied."""
    database = folder / "prepared.sqlite3"
    env = environment(database, "")
    subprocess.run([sys.executable, "-c", PREPARE], cwd=ROOT, env=env, check=True)
    return database


class Gunicorn:
    """Its master, and its workers."""

    def __init__(
        self, port: int, process: subprocess.Popen[bytes], database: Path, log: Path
    ) -> None:
        self.port = port
        self.process = process
        self.database = database
        self._log = log

    def log(self) -> str:
        """What it and its workers wrote so far."""
        return self._log.read_text(errors="replace")

    def workers(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def ask(self, tenant: str, path: str = "/api/version", address: str = "") -> Answer:
        return ask(self.port, tenant, path, address)

    def ask_at_once(self, tenant: str, times: int, at_once: int = 16) -> list[Answer]:
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(lambda _: self.ask(tenant), range(times)))

    def wait_for_workers(self, count: int) -> None:
        """Returns once each of so many has answered."""
        seen: set[int] = set()
        deadline = time.monotonic() + PATIENCE
        while len(seen) < count:
            assert time.monotonic() < deadline, f"only {seen} answered"
            with suppress(OSError, HTTPException):
                seen |= {answer.worker for answer in self.ask_at_once("acme", 8 * count)}


@contextmanager
def gunicorn(
    prepared: Path, redis_url: str, *options: str, workers: int, **ratelimits: Any
) -> Iterator[Gunicorn]:
    """The demo on a free port, with a database and settings of its own."""
    database = prepared.parent / f"{time.monotonic_ns()}.sqlite3"
    shutil.copy(prepared, database)
    listener = listen(0)
    port = listener.getsockname()[1]
    bind = f"--bind=fd://{listener.fileno()}"
    flags = [bind, f"--workers={workers}", "--no-control-socket", "--graceful-timeout=2"]
    path = database.with_suffix(".log")
    with path.open("wb") as log, listener:
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", *flags, *options],
            cwd=ROOT,
            env=environment(database, redis_url, **ratelimits),
            pass_fds=[listener.fileno()],
            stdout=log,
            stderr=log,
        )
    try:
        server = Gunicorn(port, process, database, path)
        server.wait_for_workers(workers)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        # Shown by pytest if the test fails.
        print(server.log())
    assert not re.search(r"Traceback|Exception in worker", server.log())


@contextmanager
def busy(
    server: Gunicorn, tenant: str, callers: int = 4, addresses: Sequence[str] = ("",)
) -> Iterator[list[Answer]]:
    """Callers who ask without a pause, and all that they were answered so far."""
    answers: list[Answer] = []
    failures: list[BaseException] = []
    stop = threading.Event()

    def call() -> None:
        try:
            while not stop.is_set():
                for address in addresses:
                    answers.append(server.ask(tenant, address=address))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
