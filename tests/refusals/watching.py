"""What a server was asked."""

from __future__ import annotations

from typing import Any

from tests.servers import RedisServer


def commands(server: RedisServer) -> int:
    """How often a limiter has asked it so far."""
    stats: dict[str, Any] = server.client().info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))
