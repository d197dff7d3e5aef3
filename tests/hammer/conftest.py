from __future__ import annotations

from tests.fresh import fresh, on_redis

__all__ = ["fresh", "on_redis"]
