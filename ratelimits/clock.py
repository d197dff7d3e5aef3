"""The time of this process, for stores that have none of their own."""

from __future__ import annotations

import time


def microseconds() -> int:
    """Since the epoch. To the nearest, since a frozen clock keeps its time in a float."""
    return (time.time_ns() + 500) // 1000
