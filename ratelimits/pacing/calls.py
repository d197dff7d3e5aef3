"""What is asked of a book of calls, and what it answers. Times in microseconds of its clock."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from .terms import Pace

SECOND = 1_000_000


class Ask(NamedTuple):
    """What one call needs of one limit.

    `unit` is the time one unit takes to come back, `need` that of all `units` of the call, `reach`
    how far a bucket may be used ahead of time; a window of `window` holds `quota` units.
    """

    ident: str
    is_window: bool
    units: int
    need: int
    unit: int
    reach: int
    window: int
    quota: int


class Told(NamedTuple):
    """What an answer said is left of a limit, by its place among the asks.

    The call it answers was to leave `ago`; `reset` is how long after that there is more.
    """

    place: int
    ago: int
    remaining: int
    reset: int


class Action(str, Enum):
    """What to do with a book."""

    BOOK = "book"
    BLOCK = "block"
    LIFT = "lift"


class Call(NamedTuple):
    """One action on the book of a credential, and on that of a customer's share of it.

    BOOK: find a moment within `budget`. `slot` is one that was found before, to be kept unless it
    was blocked since; with `has_share` the share was booked before. BLOCK: nobody leaves for so
    long as `budget` says, because of `by`, which `refused` so many calls. A bucket that looks full
    is so after `guard`, whatever has overtaken what. `seen` are header fields to remember, "" for
    none.
    """

    action: Action
    asks: tuple[Ask, ...]
    shares: tuple[Ask, ...] = ()
    budget: int = 0
    guard: int = 0
    slot: int = 0
    has_share: bool = False
    told: tuple[Told, ...] = ()
    by: str = ""
    seen: str = ""
    refused: int = 0


class Verdict(int, Enum):
    """LATER: nothing was booked. GO: at that moment. TURN: ask again then. STALE: terms changed."""

    LATER = 0
    GO = 1
    TURN = 2
    STALE = 3


class Reply(NamedTuple):
    """What a book says at a time: the moment to go or to ask again, or after which delay.

    Of LATER `ident` is the limit that decides, "" if it is a block, `by` then says whose. Of STALE
    `by` is the version in force.
    """

    verdict: Verdict
    now: int
    at: int = 0
    ident: str = ""
    by: str = ""


def ask_of(pace: Pace, units: int, guard: int) -> Ask:
    """What a call of so many units needs of a limit. `guard` in microseconds.

    All times are rounded so that nobody is early.
    """
    window = pace.window + (guard if pace.kind == "window" else 0)
    return Ask(
        ident=pace.ident,
        is_window=pace.kind == "window",
        units=units,
        need=-(-units * pace.window // pace.quota),
        unit=-(-pace.window // pace.quota),
        reach=pace.burst * pace.window // pace.quota - guard,
        window=window,
        quota=pace.quota,
    )


def alone(ask: Ask, workers: int) -> Ask:
    """The same for one of so many processes that do not hear of each other: evenly, no bursts."""
    unit, need = ask.unit, ask.need
    if ask.is_window:
        # With its guard, which a bucket has in how far it reaches.
        unit, need = (-(-units * ask.window // ask.quota) for units in (1, ask.units))
    unit, need = unit * workers, need * workers
    return ask._replace(is_window=False, unit=unit, need=need, reach=unit)
