"""What answers said is left, until this process's next call takes it along to the store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from ratelimits.pacing.calls import SECOND, Told
from ratelimits.pacing.terms import LONGEST, Pace

from .quotas import Quota

# Credentials that a process keeps notes of.
MOST = 1000
# Seconds between the header fields that are sent along for people to look at, and their size.
SEEN_EVERY, SEEN_MOST = 1.0, 600
# Seconds between announcements of a credential that is used.
ANNOUNCE_EVERY = 600.0


class Note(NamedTuple):
    """What one answer said of one limit, and when its call left, by the monotonic clock."""

    left: float
    remaining: int
    reset: float


class Notes:
    """Those of one credential."""

    def __init__(self) -> None:
        self._notes: dict[str, Note] = {}
        self._seen = ""
        self._next_seen = self._next_announcement = 0.0

    def add(self, paces: Sequence[Pace], quotas: Sequence[Quota], left: float, seen: str) -> None:
        """Remember what is left of those limits that it can be told of."""
        self._seen = seen[:SEEN_MOST] or self._seen
        for quota in quotas:
            pace = of_quota(quota, paces, len(quotas) == 1)
            if pace is not None and quota.remaining is not None:
                reset = pace.window / SECOND if quota.reset is None else quota.reset
                self._notes[pace.ident] = Note(left, quota.remaining, reset)

    def told(self, paces: Sequence[Pace]) -> tuple[Told, ...]:
        """What the next call takes along, of limits in this order. Each is sent once."""
        notes, self._notes = self._notes, {}
        now = time.monotonic()
        return tuple(
            Told(place, max(0, int((now - note.left) * SECOND)), note.remaining, _long(note.reset))
            for place, pace in enumerate(paces)
            if (note := notes.get(pace.ident)) is not None
        )

    def seen(self) -> str:
        """The fields to send along, "" most of the time."""
        now = time.monotonic()
        if not self._seen or now < self._next_seen:
            return ""
        seen, self._seen, self._next_seen = self._seen, "", now + SEEN_EVERY
        return seen

    def is_to_announce(self) -> bool:
        """Whether it is time to say that the credential is in use."""
        now = time.monotonic()
        if now < self._next_announcement:
            return False
        self._next_announcement = now + ANNOUNCE_EVERY
        return True


def _long(seconds: float) -> int:
    """In microseconds, as far as a store counts them exactly."""
    return int(min(seconds, LONGEST) * SECOND)


def of_quota(quota: Quota, paces: Sequence[Pace], is_alone: bool) -> Pace | None:
    """The limit that an answer speaks of: by its name, by its window, or because it is the one."""
    for pace in paces:
        if quota.name and quota.name == pace.name:
            return pace
    fitting = [pace for pace in paces if quota.window and quota.window * SECOND == pace.window]
    if not fitting and is_alone and quota.window is None:
        fitting = list(paces)
    return fitting[0] if len(fitting) == 1 else None


_kept: dict[str, Notes] = {}


def notes_of(book: str) -> Notes:
    """The notes about the credential of a book."""
    found = _kept.get(book)
    if found is not None:
        return found
    if len(_kept) >= MOST:
        # Of credentials that may not be used any more. A note that is lost does no harm.
        for other in list(_kept)[: MOST // 10]:
            _kept.pop(other, None)
    return _kept.setdefault(book, Notes())


def forget_notes() -> None:
    _kept.clear()
