"""What a server was told, as its MONITOR command shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.servers import RedisServer

KEY = re.compile(r"[^\s\"]*\{rl\}[^\s\"]*")
END = "the end of what is watched"


@dataclass
class Seen:
    """Commands as text: those that clients sent, and those that scripts ran for them."""

    sent: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)


@contextmanager
def watch(server: RedisServer) -> Iterator[Seen]:
    """Fills what it yields at the end of the block."""
    seen = Seen()
    with server.connect() as client, client.monitor() as monitor:
        yield seen
        server.client().echo(END)
        for entry in monitor.listen():
            if END in entry["command"]:
                return
            kind = seen.inside if entry["client_type"] == "lua" else seen.sent
            kind.append(entry["command"])
