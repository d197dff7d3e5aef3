"""Several servers that make up one: a Redis or Valkey cluster."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.servers import RedisServer, free_port
from tests.waiting import wait_until

SLOTS = 16384


class ClusterNode(RedisServer):
    """One server of a cluster. It keeps its place in it when it is killed and started again."""

    name = "cluster"

    def __init__(self, binary: str, directory: Path, node_timeout: int) -> None:
        self.bus = free_port()
        self.node_timeout = node_timeout
        directory.mkdir(exist_ok=True)
        super().__init__(binary, directory)

    def command(self) -> list[str]:
        options = {
            "cluster-enabled": "yes",
            "cluster-port": self.bus,
            "cluster-node-timeout": self.node_timeout,
            # Who has a master that is there is served, whatever became of the others.
            "cluster-require-full-coverage": "no",
            "repl-diskless-sync-delay": 0,
        }
        words = (word for name, value in options.items() for word in (f"--{name}", str(value)))
        return [*super().command(), *words]

    def told(self, *command: Any) -> Any:
        return self.client().execute_command("CLUSTER", *command)

    @property
    def id(self) -> str:
        return str(self.told("MYID").decode())

    def is_ok(self) -> bool:
        return b"cluster_state:ok" in self.told("INFO")


class RedisCluster:
    """Masters that share the hash slots evenly."""

    def __init__(
        self, binary: str, directory: Path, masters: int = 3, node_timeout: int = 30_000
    ) -> None:
        self.nodes = [
            ClusterNode(binary, directory / str(number), node_timeout) for number in range(masters)
        ]
        for number, node in enumerate(self.nodes):
            first, last = SLOTS * number // masters, SLOTS * (number + 1) // masters - 1
            node.told("ADDSLOTSRANGE", first, last)
            self.meet(node)
        self.wait_until_ok()

    def meet(self, node: ClusterNode) -> None:
        for other in self.nodes:
            if other is not node:
                node.told("MEET", "127.0.0.1", other.port, other.bus)

    def add_replica(self, binary: str, directory: Path) -> ClusterNode:
        """Of the first master, with all of its data."""
        master = self.nodes[0]
        replica = ClusterNode(binary, directory, master.node_timeout)
        self.meet(replica)
        wait_until(lambda: replica.told("REPLICATE", master.id), "the master is known")
        wait_until(partial(is_copy, replica, master), "the replica has all data")
        wait_until(lambda: len(master.told("SLOTS")[0]) == 4, "the replica is on the map")
        return replica

    def wait_until_ok(self) -> None:
        for node in self.nodes:
            wait_until(partial(self.is_whole, node), "the cluster is whole")

    def is_whole(self, node: ClusterNode) -> bool:
        known = node.told("NODES")
        return node.is_ok() and len(node.told("SLOTS")) >= len(self.nodes) and b"fail" not in known

    @property
    def url(self) -> str:
        return self.nodes[0].url

    @property
    def urls(self) -> str:
        return ",".join(node.url for node in self.nodes)

    def node_at(self, port: int) -> ClusterNode:
        return next(node for node in self.nodes if node.port == port)

    def flush(self) -> None:
        for node in self.nodes:
            node.flush()

    def names(self) -> set[bytes]:
        return {key for node in self.nodes for key in node.client().scan_iter()}

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def recover(self) -> None:
        for node in self.nodes:
            node.cont() if node.process is not None else node.start()
        self.wait_until_ok()
        self.flush()


def is_copy(copy: RedisServer, original: RedisServer) -> bool:
    """Whether all that one has by now has come to the other, by replication."""
    said = original.client().info("replication")["master_repl_offset"]
    heard = copy.client().info("replication")
    return heard["role"] == "slave" and int(heard["slave_repl_offset"]) >= int(said) > 0
