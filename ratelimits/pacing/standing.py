"""How full the limits of a credential are, for people to read. Times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from . import lines
from .books import HOUR, Fields, hours, name, number
from .calls import SECOND, ask_of
from .terms import Pace, Terms

# From so many refusals in an hour on, that we should not have met, a limit is set too high.
TOO_MANY = 2


class PaceStanding(NamedTuple):
    """One limit: `used` units of `most`, when the next call may leave, when all is free again."""

    pace: Pace
    used: int
    most: int
    next_in: float
    free_in: float


class Standing(NamedTuple):
    """What is booked with a credential, and what its vendor said last.

    `blocked_for` is 0 if it is not, `by` then whose answer it was. `seen` are the fields about
    limits of an answer, `seen_ago` how old they are, None if there are none. `calls` and `refused`
    are those of this hour and the one before: refused although our own limits let them leave.
    `above` are limits that are configured higher than the fields say.
    """

    paces: tuple[PaceStanding, ...]
    blocked_for: float
    by: str
    seen: str
    seen_ago: float | None
    calls: int
    refused: int
    above: tuple[Pace, ...] = ()

    @property
    def is_too_high(self) -> bool:
        """Whether the vendor allows less than is configured."""
        return self.refused >= TOO_MANY or bool(self.above)


def standing(terms: Terms, book: Fields, share: Fields, now: int) -> Standing:
    """Read what is in the books at a time in microseconds."""
    guard = int(terms.guard * SECOND)
    paces = tuple(
        _standing(pace, share if pace.per == "tenant" else book, now, guard) for pace in terms.paces
    )
    until, seen_at = number(book, "until"), number(book, "seen_at")
    hour, calls, refused, calls_before, refused_before = hours(book.get("count", ""))
    this = now // HOUR
    if hour != this:
        calls_before, refused_before = (calls, refused) if hour == this - 1 else (0, 0)
        calls = refused = 0
    return Standing(
        paces,
        max(0, until - now) / SECOND,
        book.get("by", "") if until > now else "",
        book.get("seen", ""),
        max(0, now - seen_at) / SECOND if seen_at else None,
        calls + calls_before,
        refused + refused_before,
    )


def _standing(pace: Pace, fields: Fields, now: int, guard: int) -> PaceStanding:
    ask = ask_of(pace, 1, guard)
    line = lines.read(fields.get(name(ask), ""), ask, now)
    next_in = (lines.earliest(line, ask, now, guard) - now) / SECOND
    free_in = max(0, lines.ends(line, ask) - now) / SECOND
    if ask.is_window:
        used = sum(units for at, units in line.log if at > now - ask.window)
        return PaceStanding(pace, used, pace.quota, next_in, free_in)
    # What is booked ahead of time is more than there is room for.
    used = min(pace.burst, -(-max(0, line.full - now) // ask.unit))
    return PaceStanding(pace, used, pace.burst, next_in, free_in)


class Published(Protocol):
    """A limit as its vendor tells it: units per seconds."""

    @property
    def limit(self) -> int | None: ...

    @property
    def window(self) -> float | None: ...


def above(terms: Terms, quotas: Sequence[Published]) -> tuple[Pace, ...]:
    """The limits of a credential that are configured higher than the vendor publishes any."""
    told: dict[float, int] = {}
    for quota in quotas:
        if quota.limit and quota.window:
            window = quota.window * SECOND
            # There may be others for other kinds of calls.
            told[window] = max(quota.limit, told.get(window, 0))
    own = [pace for pace in terms.paces if pace.per == "credential"]
    return tuple(pace for pace in own if told.get(pace.window, pace.quota) < pace.quota)
