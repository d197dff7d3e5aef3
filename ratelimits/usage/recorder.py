"""What this process has counted, on its way to the store."""

from __future__ import annotations

import atexit
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from ratelimits.exceptions import RateLimitError, StoreError, StoreUnavailable
from ratelimits.logs import logger, once
from ratelimits.stores import get_store, patient_store
from ratelimits.stores.background import in_background
from ratelimits.stores.charging import may_be_done
from ratelimits.stores.usage import Pages, Tables, Wanted
from ratelimits.stores.usage_entries import (
    ALL,
    REST,
    total_in,
)
from ratelimits.telling import Taken

from .kept import AT_ONCE, Kept, values_of
from .lines import Changes, Request
from .pages import HOUR_CALLERS, MINUTE_CALLERS, pages_of
from .sums import Totals

# Seconds between two writes, and of rest after which the thread ends.
EVERY = 2.0
REST_FOR = 60.0
# After so many failures in a row it is worth a line in the log.
FAILURES = 5
# How far above its size a table may grow before it is cut, as a part of it.
SLACK = 4


class Recorder:
    """Takes are noted on the requests' path, and counted and written by a thread of its own.

    Nothing here raises anything to a request, or lets it wait for I/O. What is noted while the
    store is away is written once it is back. Tests set `by_itself` to False, and call flush().
    """

    by_itself = True
    # Takes that wait to be counted; whoever adds one more counts them.
    most_waiting = 1000
    # Callers that wait to be written, and of each minute are written at once: see Kept.
    most_kept = 10_000
    most_written = 1000
    # For metrics: what else all that is counted is added to, and who is told that it was.
    totals: Totals | None = None
    when_counted: Callable[[], None] | None = None

    def __init__(self) -> None:
        self._hooked = False
        self.forget()

    def forget(self) -> None:
        """Nothing was noted. Also for a fork, whose parent writes what was."""
        self.waiting: deque[Taken | Changes] = deque()
        self._kept = Kept(self.most_kept, self.most_written)
        self._waking, self._counting, self._writing = Lock(), Lock(), Lock()
        self._is_awake = False
        self._failures = 0
        if self.totals is not None:
            self.totals.forget()

    def drop(self) -> None:
        """Write nothing of what was noted until now: of tests, no other one is to find it."""
        with self._counting, self._writing:
            self.waiting.clear()
            self._kept = Kept(self.most_kept, self.most_written)
            if self.totals is not None:
                self.totals.changes()

    @property
    def queue(self) -> int:
        """Takes that are not counted yet, and callers that are not written."""
        return len(self.waiting) + len(self._kept)

    def note(self, noted: Taken | Changes) -> None:
        """On the path of each request."""
        waiting = self.waiting
        waiting.append(noted)
        if not self._is_awake:
            self._wake()
        if len(waiting) >= self.most_waiting:
            # No thread came by: there are none, or too much is asked.
            self.count(wait=False)

    def note_again(self, ledger: Any, taken: Taken) -> None:
        """Of a request that was counted before."""
        told = ledger.told
        if isinstance(told, Taken):
            told = ledger.told = Request(told)
        if self.totals is not None:
            self.totals.again.append(taken)
        changes = told.again(taken)
        if changes:
            self.note(changes)

    def _wake(self) -> None:
        with self._waking:
            if self._is_awake:
                return
            self._is_awake = True
        if not self._hooked:
            self._hooked = True
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self.forget)
            atexit.register(self._last)
        if self.by_itself and not in_background("usage", self._run):
            self._is_awake = False

    def _run(self) -> None:
        """Until nothing was noted for a while."""
        idle = 0.0
        while idle < REST_FOR:
            time.sleep(EVERY)
            idle = 0.0 if self.waiting or self._kept else idle + EVERY
            self._write_quietly()
            self._tell_quietly()
        self._is_awake = False
        if self.waiting:
            # Noted just before.
            self._wake()

    def _last(self) -> None:
        """When the interpreter ends."""
        if self.by_itself:
            self._write_quietly(is_last=True)
            self._tell_quietly()

    def _tell_quietly(self) -> None:
        if self.when_counted is not None:
            try:
                self.when_counted()
            except Exception:
                logger.exception("A bug in the metrics of the rate limits.")

    def _write_quietly(self, is_last: bool = False) -> None:
        """The last one waits for what a thread is writing just now, which would end with it."""
        try:
            self.count()
            if (self._kept or is_last) and _may_write():
                self.flush()
            self._failures = 0
        except (StoreUnavailable, StoreError) as error:
            # That a store is away for a moment, requests find out by themselves.
            self._failures += 1
            if self._failures >= FAILURES:
                once.error(f"Usage can't be written: {error}", topic="usage")
        except Exception:
            logger.exception("A bug in the recording of usage.")

    def count(self, wait: bool = True) -> None:
        """Add up what was noted. Without waiting: if nobody does so just now."""
        if not self._counting.acquire(blocking=wait):
            return
        try:
            self._kept.add(self.waiting, self.totals)
        finally:
            self._counting.release()

    def flush(self) -> None:
        """Write what was noted. Raises StoreUnavailable or StoreError; then it is kept."""
        self.count()
        with self._writing:
            self._kept.shrink()
            tables = patient_store().usage if self._kept else None
            while tables is not None and (batch := self._kept.batch()) is not None:
                minute, entries = batch
                try:
                    sizes = tables.add(pages_of(minute), values_of(entries))
                except RateLimitError as error:
                    if not may_be_done(error):
                        self._kept.put_back(minute, entries)
                    raise
                self._cut(tables, pages_of(minute), sizes)

    def _cut(self, tables: Tables, pages: Pages, sizes: tuple[int, int]) -> None:
        """Drop those who did least, where there are too many."""
        of_minute, of_hour = sizes
        for table, seconds, size, most in (
            (pages.minute, pages.minute_seconds, of_minute, MINUTE_CALLERS),
            (pages.hour, pages.hour_seconds, of_hour, HOUR_CALLERS),
        ):
            room = most // tables.thrift
            if size > room + room // SLACK:
                (entries,) = tables.read([Wanted(table)])
                fields = _least(entries, room)
                for start in range(0, len(fields), AT_ONCE):
                    tables.drop(table, seconds, fields[start : start + AT_ONCE])


def _may_write() -> bool:
    """Not beside a test whose transaction the counts are in."""
    store = get_store()
    return store is not None and not store.thread_sensitive


def _least(entries: Mapping[bytes, bytes], most: int) -> list[bytes]:
    """The callers in a table that are too many, those who asked least."""
    callers = [field for field in entries if field not in (ALL, REST)]
    callers.sort(key=lambda field: sum(total_in(entries[field])[:2]))
    return callers[: max(0, len(callers) - most)]


recorder = Recorder()
