"""What a process has counted and not written yet: bounded, whoever asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import nlargest
from itertools import islice
from threading import Lock

from ratelimits.limits import Owner
from ratelimits.stores.usage_entries import ALL, MOST_LINES_OF_ALL, REST, Entry, add, packed
from ratelimits.telling import Taken

from .lines import ALLOWED, REFUSED, TOTAL, Changes, note, owner_of
from .pages import MINUTE, field_of, now
from .sums import Totals

# Callers that are written at once: so many keep a server busy for about a millisecond.
AT_ONCE = 50

# Whose entry it is: REST stands for those who were too many.
Who = Owner | bytes
Batch = Mapping[Who, Entry]


class Kept:
    """Entries of callers by the minutes that they are of. Safe with threads."""

    def __init__(self, most: int, most_written: int) -> None:
        """With so many callers at most, half of them without a tenant.

        Of each minute so many are written at most. Those that are too many are added up.
        """
        self.most = most
        self.most_written = most_written
        self._minutes: dict[int, dict[Who, Entry]] = {}
        self._count = 0
        self._lock = Lock()

    def __bool__(self) -> bool:
        return self._count > 0

    def __len__(self) -> int:
        return self._count

    def add(self, waiting: deque[Taken | Changes], totals: Totals | None = None) -> None:
        """Count in this minute what waits now."""
        with self._lock:
            kept = self._minutes.setdefault(now() // MINUTE, {})
            for _ in range(len(waiting)):
                noted = waiting.popleft()
                if totals is not None:
                    totals.add(noted)
                if isinstance(noted, Taken):
                    note(self._entry(kept, owner_of(noted)), noted)
                else:
                    for owner, entry in noted.items():
                        add(self._entry(kept, owner), entry)

    def _entry(self, kept: dict[Who, Entry], owner: Who) -> Entry:
        found = kept.get(owner)
        if found is None:
            has_tenant = isinstance(owner, Owner) and owner.kind == "tenant"
            if self._count >= (self.most if has_tenant else self.most // 2):
                owner = REST
            self._count += owner not in kept
            found = kept.setdefault(owner, {})
        return found

    def shrink(self) -> None:
        """Keep those who asked most of each minute, tenants before addresses."""
        with self._lock:
            for kept in self._minutes.values():
                if len(kept) > self.most_written:
                    self._shrink(kept)
            self._count = sum(map(len, self._minutes.values()))

    def _shrink(self, kept: dict[Who, Entry]) -> None:
        wanted = set(nlargest(self.most_written, kept, key=lambda who: _rank(kept, who)))
        for who in [who for who in kept if who not in wanted and who != REST]:
            add(kept.setdefault(REST, {}), kept.pop(who))

    def batch(self) -> tuple[int, Batch] | None:
        """Some of it, of one minute, which is not here any more; None if there is nothing."""
        with self._lock:
            for minute, kept in [*self._minutes.items()]:
                entries = {who: kept[who] for who in islice(kept, AT_ONCE)}
                for who in entries:
                    del kept[who]
                self._count -= len(entries)
                if not kept:
                    del self._minutes[minute]
                if entries:
                    return minute, entries
        return None

    def put_back(self, minute: int, entries: Batch) -> None:
        """A batch that could not be written."""
        with self._lock:
            kept = self._minutes.setdefault(minute, {})
            for who, entry in entries.items():
                add(self._entry(kept, who), entry)


def _rank(kept: Batch, who: Who) -> tuple[bool, int]:
    total = kept[who].get(TOTAL, [0, 0])
    return isinstance(who, Owner) and who.kind == "tenant", total[ALLOWED] + total[REFUSED]


def values_of(entries: Batch) -> dict[bytes, bytes]:
    """Entries as they are written, with the sum of all of them."""
    everybody: Entry = {}
    for entry in entries.values():
        add(everybody, entry, MOST_LINES_OF_ALL)
    fields = {
        who if isinstance(who, bytes) else field_of(who): packed(entry)
        for who, entry in entries.items()
    }
    return {**fields, ALL: packed(everybody)}
