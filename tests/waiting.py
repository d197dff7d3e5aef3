"""Waiting for what takes a moment, however slow the machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import redis

PAUSE = 0.01


def wait_until(
    condition: Callable[[], object], what: str = "it comes true", seconds: float = 30
) -> None:
    """Also in frozen time. A server that is not there yet has not made it true."""
    for _ in range(int(seconds / PAUSE)):
        with suppress(redis.RedisError):
            if condition():
                return
        time.sleep(PAUSE)
    raise AssertionError(f"after {seconds} s not yet: {what}")


def until_nobody_probes() -> None:
    """An earlier test's store is looked for until it is found, and would be told of in this one."""
    wait_until(lambda: not _probes(), "nobody looks for a store that was away")


def _probes() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ratelimits-probe"]
