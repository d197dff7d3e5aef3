"""How many processes share a store, as they count each other through it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress

from ratelimits.conf import conf
from ratelimits.exceptions import StoreError, StoreUnavailable
from ratelimits.keys import digest
from ratelimits.logs import once

from .background import in_background

SECOND = 1_000_000
# A process that takes announces itself at most so often, sooner at first: others start with it.
EVERY = 30 * SECOND
FIRST = SECOND
# For so many seconds it is counted after that.
COUNTED_FOR = 300


class Processes:
    """Announces this process and counts all of them, now and then while it takes.

    `ask` is the store's count_processes(). `counted` is what it last said, None before.
    """

    def __init__(self, ask: Callable[[str, int], int]) -> None:
        self._ask = ask
        self._token = secrets.token_hex(6)
        self._process = 0
        self._pause = FIRST
        self.counted: int | None = None
        # When to count next, by the monotonic clock in microseconds. Takes compare it.
        self.due = 0

    @property
    def number(self) -> int:
        """How many there are: what WORKERS says, or else as counted; 1 if nobody ever was."""
        return int(conf.WORKERS or self.counted or 1)

    def start(self, now: int) -> None:
        """Count in a thread of its own, if that is of any use."""
        if self._process != os.getpid():
            # A fork is a process that nobody has counted yet.
            self._process, self._pause = os.getpid(), FIRST
        self.due = now + self._pause
        self._pause = min(2 * self._pause, EVERY)
        if conf.WORKERS is None:
            in_background("count", self.count)

    def count(self) -> None:
        """Ask the store. If it fails, requests will notice by themselves."""
        try:
            with suppress(StoreUnavailable):
                self.counted = self._ask(f"{self._token}-{os.getpid()}", COUNTED_FOR)
        except StoreError as error:
            once.error(f"The processes that share the store can't be counted: {error}")


def key() -> str:
    """Where a store keeps the processes."""
    return digest("processes")


def announced(value: bytes, ident: str, now: int, seconds: int) -> tuple[bytes, int]:
    """The value of a store that keeps only bytes, with one more process, and how many there are.

    `now` is in microseconds.
    """
    times = {**recent(value, now, seconds), ident: now // SECOND}
    return "\n".join(f"{other} {time}" for other, time in times.items()).encode(), len(times)


def recent(value: bytes, now: int, seconds: int) -> dict[str, int]:
    """When the processes in such a value last announced themselves, in seconds."""
    times = {}
    for line in value.decode(errors="replace").splitlines():
        ident, _, time = line.partition(" ")
        # Clocks may differ a little.
        if time.isdigit() and abs(now // SECOND - int(time)) < seconds:
            times[ident] = int(time)
    return times
