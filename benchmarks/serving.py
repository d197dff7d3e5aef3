"""The web servers that are put under load, over the Redis and the rows of this run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec

from tests.processes import ROOT
from tests.servers import Server

from .bench import Bench
from .table import LeftOut

# Seconds for a start, and for what is under way at the end.
GRACE = 30


class WebServer(Server):
    """Inherits the environment, in which the settings are."""

    module = ""
    options: tuple[str, ...] = ()

    def command(self) -> list[str]:
        return [self.binary, "-m", self.module, *self.options, *self.own_options()]

    def own_options(self) -> list[str]:
        raise NotImplementedError

    def wait_until_ready(self, timeout: float = GRACE) -> None:
        super().wait_until_ready(timeout)

    def answers(self) -> bool:
        connection = HTTPConnection(self.address, timeout=GRACE)
        try:
            connection.request("GET", "/plain")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def flush(self) -> None:
        """It keeps nothing."""

    def kill(self) -> None:
        """Ends it and its workers, which must not outlive it."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            super().kill()
        self.process = None


class Gunicorn(WebServer):
    name = module = "gunicorn"
    options = ("--worker-class=gthread", "--workers=2", "--threads=8", "--keep-alive=30")

    def own_options(self) -> list[str]:
        own = [f"--bind={self.address}", f"--chdir={ROOT}", "--log-level=error"]
        return [*own, "--no-control-socket", "benchmarks.wsgi"]


class Uvicorn(WebServer):
    name = module = "uvicorn"
    options = ("--lifespan=off", "--log-level=error", "--no-access-log")

    def own_options(self) -> list[str]:
        return [f"--port={self.port}", f"--app-dir={ROOT}", "benchmarks.asgi:application"]


@contextmanager
def serving(bench: Bench, kind: type[WebServer]) -> Iterator[WebServer]:
    """Raises LeftOut if the server is not installed."""
    if find_spec(kind.module) is None:
        raise LeftOut(f"There is no {kind.name} (pip install 'django-ratelimits[bench]').")
    directory = bench.directory / kind.name
    directory.mkdir()
    server = kind(sys.executable, directory)
    try:
        yield server
    finally:
        server.kill()
