from __future__ import annotations

from tests.fresh import fresh, on_redis  # noqa: F401
