"""How far it is, for who waits at a terminal."""

from __future__ import annotations

import time
from typing import Any

WIDTH = 30
# Seconds between two looks of the bar.
STEP = 0.1


class Progress:
    """A bar on a terminal, which is gone at the end; nothing anywhere else.

    Without a total it tells only how much was done.
    """

    def __init__(self, stream: Any, label: str, total: int | None) -> None:
        self._stream, self._label, self._total = stream, label, total
        self._shown = bool(getattr(stream, "isatty", bool)())
        self._next = 0.0
        self._before = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._shown and self._next:
            self._write("\r\x1b[K")

    def pass_over(self, part: int) -> None:
        """A part is done; from now on at() tells of the next one."""
        self._before += part

    def at(self, done: int) -> None:
        if not self._shown:
            return
        now = time.monotonic()
        if now >= self._next:
            self._next = now + STEP
            self._write(f"\r{self._label} {self._bar(self._before + done)}\x1b[K")

    def _write(self, text: str) -> None:
        # Not in the colour of errors.
        self._stream.write(text, style_func=str, ending="")
        self._stream.flush()

    def _bar(self, done: int) -> str:
        if not self._total:
            return f"{done:,}"
        share = min(1.0, done / self._total)
        full = int(share * WIDTH)
        return f"[{'#' * full}{'.' * (WIDTH - full)}] {share:4.0%}"
