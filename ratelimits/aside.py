"""Signals for which nobody waits: sent from a thread of their own, one after the other."""

from __future__ import annotations

from threading import Lock, Thread
from typing import Any

from django.db import connections
from django.dispatch import Signal

from .logs import once


class Aside:
    """Sends in the order in which it was told to, however long receivers take."""

    def __init__(self) -> None:
        self._last: Thread | None = None
        self._lock = Lock()

    def send(self, signal: Signal, sender: object, **named: Any) -> None:
        if not signal.receivers:
            return
        with self._lock:
            args = (self._last, signal, sender, named)
            thread = Thread(target=_send, args=args, name="ratelimits-signals", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                # No threads left, or the interpreter ends: no reason to fail a request.
                once.error(f"Receivers of store_down or store_up were not told: {error}")
                return
            self._last = thread


def _send(before: Thread | None, signal: Signal, sender: object, named: dict[str, Any]) -> None:
    if before is not None:
        before.join()
    try:
        signal.send_robust(sender=sender, **named)
    finally:
        # Those that receivers opened in this thread, which ends.
        connections.close_all()
