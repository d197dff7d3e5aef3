"""A master and its replica, and a sentinel that puts one in the other's place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.servers import RedisServer
from tests.waiting import wait_until

# Sentinel's own defaults are for networks, and for people who wait.
CONFIGURATION = """
port {port}
bind 127.0.0.1
sentinel monitor {service} 127.0.0.1 {master} 1
sentinel down-after-milliseconds {service} 700
sentinel failover-timeout {service} 3000
"""


class Replica(RedisServer):
    def __init__(self, binary: str, directory: Path, master: RedisServer) -> None:
        self.master = master
        super().__init__(binary, directory)

    def command(self) -> list[str]:
        return [*super().command(), "--replicaof", "127.0.0.1", str(self.master.port)]


class Master(RedisServer):
    def command(self) -> list[str]:
        return [*super().command(), "--repl-diskless-sync-delay", "0"]


class Sentinel(RedisServer):
    def __init__(self, binary: str, directory: Path, master: RedisServer) -> None:
        self.master = master
        # Of its own, since django-redis keeps one pool for a URL, whatever else the options say.
        self.service = f"limits-{master.port}"
        super().__init__(binary, directory)

    def command(self) -> list[str]:
        path = self.directory / "sentinel.conf"
        names = {"port": self.port, "service": self.service, "master": self.master.port}
        path.write_text(CONFIGURATION.format(**names))
        return [self.binary, str(path), "--sentinel"]


class Watched:
    """All three of them."""

    def __init__(self, binary: str, directory: Path) -> None:
        folders = [directory / name for name in ("master", "replica", "sentinel")]
        for folder in folders:
            folder.mkdir()
        self.master = Master(binary, folders[0])
        self.replica = Replica(binary, folders[1], self.master)
        self.sentinel = Sentinel(binary, folders[2], self.master)
        wait_until(self.is_whole, "the sentinel knows the replica, and it has all data")

    def is_whole(self) -> bool:
        known = [replica[b"master-link-status"] for replica in self.asked("replicas")]
        return known == [b"ok"]

    def asked(self, what: str) -> Any:
        return self.sentinel.client().execute_command(f"SENTINEL {what}", self.sentinel.service)

    def master_port(self) -> int:
        return int(self.asked("get-master-addr-by-name")[1])

    @property
    def sentinels(self) -> list[tuple[str, int]]:
        return [("127.0.0.1", self.sentinel.port)]

    def kill(self) -> None:
        for server in (self.sentinel, self.master, self.replica):
            server.kill()
