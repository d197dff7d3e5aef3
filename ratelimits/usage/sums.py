"""Sums over all callers, for metrics. Nobody adds them up unless somebody asks for them."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import NamedTuple

from ratelimits.stores.usage_entries import MOST_LINES_OF_ALL, Entry, add
from ratelimits.telling import Taken

from .lines import Changes, note


class Made(NamedTuple):
    """Who decided a take, and the status that its decision means."""

    source: str
    status: int


class Sums(NamedTuple):
    """What was added since the last time: the numbers of lines, and takes.

    A request that a second door refuses makes lines of the first one less again.
    """

    lines: Entry
    takes: dict[Made, int]


class Totals:
    """Adds up what the recorder counts, by the thread that counts. Safe with threads."""

    def __init__(self) -> None:
        # Takes of requests that were counted before: of their lines only the changes are told.
        self.again: deque[Taken] = deque()
        self.forget()

    def forget(self) -> None:
        """Nothing was added. Also for a fork, in which nobody would open a lock that was held."""
        self._lock = Lock()
        self.again.clear()
        self._lines: Entry = {}
        self._takes: dict[Made, int] = {}

    def add(self, noted: Taken | Changes) -> None:
        with self._lock:
            if isinstance(noted, Taken):
                self._note(noted)
                self._took(noted)
            else:
                for changed in noted.values():
                    add(self._lines, changed, MOST_LINES_OF_ALL)

    def _note(self, take: Taken) -> None:
        if len(self._lines) < MOST_LINES_OF_ALL:
            # Most come by here. One take has few lines.
            note(self._lines, take)
            return
        entry: Entry = {}
        note(entry, take)
        add(self._lines, entry, MOST_LINES_OF_ALL)

    def changes(self) -> Sums:
        """What was added since this was last asked."""
        with self._lock:
            for _ in range(len(self.again)):
                self._took(self.again.popleft())
            sums = Sums(self._lines, self._takes)
            self._lines, self._takes = {}, {}
        return sums

    def _took(self, take: Taken) -> None:
        made = Made("local" if take.local else "store", take.decision.status)
        self._takes[made] = self._takes.get(made, 0) + 1
