"""Work off the requests' path, in threads that live no longer than it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connections

from ratelimits.logs import logger


def in_background(name: str, work: Callable[[], None]) -> bool:
    """Start a thread. False if there can be none now: too many, or the interpreter ends."""

    def run() -> None:
        try:
            work()
        except Exception:
            logger.exception("A bug in what the rate limits do in the background.")
        finally:
            # A store may have used the database, and nobody else ends this thread's connections.
            connections.close_all()

    try:
        threading.Thread(target=run, name=f"ratelimits-{name}", daemon=True).start()
    except RuntimeError:
        return False
    return True
