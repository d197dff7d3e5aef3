"""Which process has which connection to a server, as Linux tells it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

ESTABLISHED = "01"


def own_connections(pids: Sequence[int], port: int) -> dict[int, set[int]]:
    """The local ports of the connections to a port that one process has, and none of the others."""
    inodes = {pid: inodes_of(pid) for pid in pids}
    ports = connections_to(port)
    own = {}
    for pid in pids:
        others: set[int] = set().union(*(inodes[other] for other in pids if other != pid))
        own[pid] = {ports[inode] for inode in inodes[pid] - others if inode in ports}
    return own


def connections_to(port: int) -> dict[int, int]:
    """The local port of each connection to a local port, by its inode."""
    found = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, *_, inode = line.split()[:10]
        if state == ESTABLISHED and int(remote.partition(":")[2], 16) == port:
            found[int(inode)] = int(local.partition(":")[2], 16)
    return found


def inodes_of(pid: int) -> set[int]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            kind, _, inode = os.readlink(entry).partition(":")
            if kind == "socket":
                found.add(int(inode.strip("[]")))
    return found
