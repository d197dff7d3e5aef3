"""What this process has counted, on its way to the store."""

from __future__ import annotations

import atexit
import os
import time
from collections import deque
from collections.abc import Mapping
from itertools import islice
from threading import Lock
from typing import Any

from ratelimits.exceptions import RateLimitError, StoreError, StoreUnavailable
from ratelimits.limits import Owner
from ratelimits.logs import logger, once
from ratelimits.stores import get_store, patient_store
from ratelimits.stores.background import in_background
from ratelimits.stores.charging import may_be_done
from ratelimits.stores.usage import Pages, Tables, Wanted
from ratelimits.stores.usage_entries import (
    ALL,
    MOST_LINES_OF_ALL,
    REST,
    Entry,
    add,
    packed,
    total_in,
)
from ratelimits.telling import Taken

from .lines import Changes, Request, note, owner_of
from .pages import HOUR_CALLERS, MINUTE, MINUTE_CALLERS, field_of, now, pages_of

# Seconds between two writes, and of rest after which the thread ends.
EVERY = 2.0
REST_FOR = 60.0
# Callers that are written at once: so many keep a server busy for about a millisecond.
AT_ONCE = 50
# After so many failures in a row it is worth a line in the log.
FAILURES = 5
# How far above its size a table may grow before it is cut, as a part of it.
SLACK = 4

# Whose entry it is: REST stands for those who were too many.
Who = Owner | bytes


class Recorder:
    """Takes are noted on the requests' path, and counted and written by a thread of its own.

    Nothing here raises anything to a request, or lets it wait for I/O. What is noted while the
    store is away is written once it is back. Tests set `by_itself` to False, and call flush().
    """

    by_itself = True
    # Takes that wait to be counted; whoever adds one more counts them.
    most_waiting = 1000
    # Callers of some minute that wait to be written, half of them without a tenant; those that
    # come later are added up.
    most_kept = 10_000

    def __init__(self) -> None:
        self._hooked = False
        self.forget()

    def forget(self) -> None:
        """Nothing was noted. Also for a fork, whose parent writes what was."""
        self.waiting: deque[Taken | Changes] = deque()
        self._kept: dict[int, dict[Who, Entry]] = {}
        self._count = 0
        self._counting, self._writing = Lock(), Lock()
        self._is_awake = False
        self._failures = 0

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
        changes = told.again(taken)
        if changes:
            self.note(changes)

    def _wake(self) -> None:
        self._is_awake = True
        if not self._hooked:
            self._hooked = True
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
        self._is_awake = False
        if self.waiting:
            # Noted just before.
            self._wake()

    def _last(self) -> None:
        """When the interpreter ends."""
        if self.by_itself:
            self._write_quietly()

    def _write_quietly(self) -> None:
        try:
            self.count()
            if self._kept and _may_write():
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
            minute = now() // MINUTE
            kept = self._kept.setdefault(minute, {})
            waiting = self.waiting
            for _ in range(len(waiting)):
                self._add(kept, waiting.popleft())
            if not kept:
                del self._kept[minute]
        finally:
            self._counting.release()

    def _add(self, kept: dict[Who, Entry], noted: Taken | Changes) -> None:
        if isinstance(noted, Taken):
            note(self._entry(kept, owner_of(noted)), noted)
        else:
            for owner, entry in noted.items():
                add(self._entry(kept, owner), entry)

    def _entry(self, kept: dict[Who, Entry], owner: Who) -> Entry:
        found = kept.get(owner)
        if found is None:
            has_tenant = isinstance(owner, Owner) and owner.kind == "tenant"
            if self._count >= (self.most_kept if has_tenant else self.most_kept // 2):
                owner = REST
            self._count += owner not in kept
            found = kept.setdefault(owner, {})
        return found

    def flush(self) -> None:
        """Write what was noted. Raises StoreUnavailable or StoreError; then it is kept."""
        self.count()
        with self._writing:
            tables = patient_store().usage if self._kept else None
            while tables is not None and (batch := self._batch()) is not None:
                minute, entries = batch
                try:
                    sizes = tables.add(pages_of(minute), _packed(entries))
                except RateLimitError as error:
                    if not may_be_done(error):
                        self._keep(minute, entries)
                    raise
                self._cut(tables, pages_of(minute), sizes)

    def _batch(self) -> tuple[int, dict[Who, Entry]] | None:
        """Some of what is kept, of one minute. From now on it is kept no more."""
        with self._counting:
            for minute, kept in self._kept.items():
                entries = {owner: kept[owner] for owner in islice(kept, AT_ONCE)}
                for owner in entries:
                    del kept[owner]
                if not kept:
                    del self._kept[minute]
                self._count -= len(entries)
                return minute, entries
        return None

    def _keep(self, minute: int, entries: dict[Who, Entry]) -> None:
        with self._counting:
            kept = self._kept.setdefault(minute, {})
            for owner, entry in entries.items():
                add(self._entry(kept, owner), entry)

    def _cut(self, tables: Tables, pages: Pages, sizes: tuple[int, int]) -> None:
        """Drop those who did least, where there are too many."""
        of_minute, of_hour = sizes
        for table, seconds, size, most in (
            (pages.minute, pages.minute_seconds, of_minute, MINUTE_CALLERS),
            (pages.hour, pages.hour_seconds, of_hour, HOUR_CALLERS),
        ):
            if size > most + most // SLACK:
                (entries,) = tables.read([Wanted(table)])
                fields = _least(entries, most)
                for start in range(0, len(fields), AT_ONCE):
                    tables.drop(table, seconds, fields[start : start + AT_ONCE])


def _may_write() -> bool:
    """Not beside a test whose transaction the counts are in."""
    store = get_store()
    return store is not None and not store.thread_sensitive


def _packed(entries: Mapping[Who, Entry]) -> dict[bytes, bytes]:
    everybody: Entry = {}
    for entry in entries.values():
        add(everybody, entry, MOST_LINES_OF_ALL)
    fields = {
        owner if isinstance(owner, bytes) else field_of(owner): packed(entry)
        for owner, entry in entries.items()
    }
    return {**fields, ALL: packed(everybody)}


def _least(entries: Mapping[bytes, bytes], most: int) -> list[bytes]:
    """The callers in a table that are too many, those who asked least."""
    callers = [field for field in entries if field not in (ALL, REST)]
    callers.sort(key=lambda field: sum(total_in(entries[field])[:2]))
    return callers[: max(0, len(callers) - most)]


recorder = Recorder()
