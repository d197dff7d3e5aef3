"""Where stores keep the books of calls to other people's APIs. See pacing/books.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from ratelimits.clock import microseconds
from ratelimits.pacing import lines
from ratelimits.pacing.books import Done, name, run
from ratelimits.pacing.calls import SECOND, Ask, Call, Reply, Verdict

# Credentials of an upstream that are remembered: the last so many that were used, for so many
# seconds after that.
MOST_NAMES, NAMES_KEPT = 20, 7 * 86400
# Books of one process that has no store, from which on those that nobody needs are looked for.
MOST_BOOKS = 10_000
# For no longer than this does a process wait for what it booked itself while it had one.
NOTED = 60 * SECOND


class Keys(NamedTuple):
    """Where the books are, and the version of the terms."""

    book: str
    share: str
    version: str


class Look(NamedTuple):
    """What is in both books, at a time in microseconds."""

    now: int
    book: Mapping[str, str]
    share: Mapping[str, str]


class Gates(ABC):
    """Every method may raise StoreUnavailable or StoreError."""

    @abstractmethod
    def run(self, call: Call, keys: Keys, version: str, now: int | None = None) -> Reply:
        """Do what is asked, unless the terms have another version. `now` replaces the clock."""

    @abstractmethod
    def look(self, keys: Keys) -> Look:
        """What is booked. Changes nothing."""

    @abstractmethod
    def announce(self, key: str, name: str) -> None:
        """Remember a name under a key."""

    @abstractmethod
    def announced(self, key: str) -> list[str]:
        """The names that are remembered, the last one first."""


class MemoryGates(Gates):
    """In this process's memory, behind a lock. `version_of` gives the version under a key."""

    def __init__(self, version_of: Callable[[str], str] = lambda key: "") -> None:
        self._version_of = version_of
        self._lock = Lock()
        self._books: dict[str, tuple[dict[str, str], int]] = {}
        self._most = MOST_BOOKS
        self._names: dict[str, dict[str, None]] = {}

    def run(self, call: Call, keys: Keys, version: str, now: int | None = None) -> Reply:
        with self._lock:
            at = microseconds() if now is None else now
            current = self._version_of(keys.version)
            if current and current != version:
                return Reply(Verdict.STALE, at, by=current)
            done = run(call, self._fields(keys.book), self._fields(keys.share), at)
            self._keep(keys, done, at)
        return done.reply

    def note(self, asks: Sequence[Ask], keys: Keys, ahead: int) -> None:
        """Count here too what was booked elsewhere, for so long from now. For buckets."""
        with self._lock:
            now = microseconds()
            fields, ends = dict(self._fields(keys.book)), now
            for ask in asks:
                line = lines.read(fields.get(name(ask), ""), ask, now)
                full = lines.booked(line, ask, now + ahead, now).full
                most = now + ahead + max(ask.need, min(ask.window, NOTED))
                line = line._replace(full=min(full, most))
                fields[name(ask)], ends = lines.written(line, ask), max(ends, line.full)
            self._keep(keys, Done(Reply(Verdict.GO, now), fields, {}, ends - now), now)

    def _fields(self, key: str) -> dict[str, str]:
        return self._books[key][0] if key in self._books else {}

    def _keep(self, keys: Keys, done: Done, now: int) -> None:
        if len(self._books) >= self._most:
            self._books = {key: kept for key, kept in self._books.items() if kept[1] > now}
            # Not with each call if they are needed: as seldom as there are many.
            self._most = max(MOST_BOOKS, 2 * len(self._books))
        kept_for = {keys.book: (done.book, done.book_for), keys.share: (done.share, done.share_for)}
        for key, (changes, seconds) in kept_for.items():
            if changes:
                self._books[key] = ({**self._fields(key), **changes}, now + seconds)

    def look(self, keys: Keys) -> Look:
        with self._lock:
            return Look(microseconds(), self._fields(keys.book), self._fields(keys.share))

    def announce(self, key: str, name: str) -> None:
        with self._lock:
            names = self._names.setdefault(key, {})
            names.pop(name, None)
            names[name] = None
            for old in list(names)[:-MOST_NAMES]:
                del names[old]

    def announced(self, key: str) -> list[str]:
        with self._lock:
            return list(reversed(self._names.get(key, {})))
