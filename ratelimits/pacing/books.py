"""Books of calls: one for each credential, one for each customer's share of it.

A book is a number of fields with a text each, so that every store can hold it. Each action is a
function of both books and the time; the script gate.lua does the same in one round trip.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from . import lines
from .calls import SECOND, Action, Ask, Call, Reply, Verdict
from .lines import Line

HOUR = 3600 * SECOND
# How much longer than needed a book is kept: operators look at it afterwards.
KEPT = 2 * HOUR
# Nobody who is told to come later is sent further back than this behind the first free moment.
FURTHEST = HOUR
# A call may leave so late that this part of the guard is used up.
ROOM = 8

Fields = Mapping[str, str]


class Done(NamedTuple):
    """A reply, the fields that changed of each book, and for how long each is needed."""

    reply: Reply
    book: dict[str, str]
    share: dict[str, str]
    book_for: int = KEPT
    share_for: int = KEPT


def run(call: Call, book: Fields, share: Fields, now: int) -> Done:
    """Do what is asked."""
    page = Page(call.asks, book, now, call.guard)
    if call.seen:
        page.changes |= {"seen": call.seen, "seen_at": str(now)}
    if call.action is Action.BLOCK:
        return page.block(call)
    if call.action is Action.LIFT:
        return page.lift()
    return page.book(call, Page(call.shares, share, now, call.guard))


class Page:
    """What a book says now, and what is to be written into it."""

    def __init__(self, asks: tuple[Ask, ...], fields: Fields, now: int, guard: int) -> None:
        self.asks = asks
        self.now = now
        self.guard = guard
        self.until = number(fields, "until")
        self.lobby = number(fields, "lobby")
        self.by = fields.get("by", "")
        self.count = fields.get("count", "")
        self.lines = [lines.read(fields.get(name(ask), ""), ask, now) for ask in asks]
        self.changes: dict[str, str] = {}

    def book(self, call: Call, share: Page) -> Done:
        for told in call.told:
            line = self.lines[told.place]
            corrected = lines.corrected(line, self.asks[told.place], told, self.now)
            if corrected != line:
                self._write(told.place, corrected)
        if call.slot and self.until <= call.slot:
            self._leave_late(call.slot)
            return self._done(Reply(Verdict.GO, self.now, call.slot), share)
        at, ident = self._earliest()
        if call.has_share:
            return self._leave(call, at, ident, share)
        turn, whose = share._earliest()
        if turn <= self.now:
            return self._leave(call, at, ident, share)
        if max(turn, at) - self.now > call.budget:
            if turn >= at:
                return self._later(share, call, turn, whose, share)
            return self._later(self, call, at, ident, share)
        share._add(turn)
        return self._done(Reply(Verdict.TURN, self.now, turn), share)

    def _earliest(self) -> tuple[int, str]:
        """When a call may leave, and the limit that decides; "" if it is a block."""
        at, ident = max(self.now, self.until), ""
        for ask, line in zip(self.asks, self.lines, strict=True):
            first = lines.earliest(line, ask, self.now, self.guard, self.until)
            if first > at:
                at, ident = first, ask.ident
        return at, ident

    def _leave(self, call: Call, at: int, ident: str, share: Page) -> Done:
        if at - self.now > call.budget:
            return self._later(self, call, at, ident, share)
        self._add(at)
        if not call.has_share:
            share._add(self.now)
        # A call whose moment was blocked was counted when it got that one.
        self.changes["count"] = counted(self.count, self.now, 0 if call.slot else 1, 0)
        return self._done(Reply(Verdict.GO, self.now, at), share)

    def _leave_late(self, slot: int) -> None:
        """Later than booked, by more than the guard easily has room for."""
        if self.now - slot <= self.guard // ROOM:
            return
        for place, ask in enumerate(self.asks):
            line = lines.put_off(self.lines[place], ask, slot, self.now)
            if line != self.lines[place]:
                self._write(place, line)

    def _later(self, page: Page, call: Call, at: int, ident: str, share: Page) -> Done:
        """Those who come later get a place each, or all would come at the same moment."""
        lobby = max(page.lobby, at)
        delay = max(lobby - call.budget // 2, self.until, at - call.budget) - self.now
        if lobby - at < FURTHEST:
            lobby += max((ask.need for ask in page.asks), default=0)
        page.lobby = lobby
        page.changes["lobby"] = str(lobby)
        by = self.by if self.until > self.now else ""
        return self._done(Reply(Verdict.LATER, self.now, delay, ident, by), share)

    def block(self, call: Call) -> Done:
        self.changes["count"] = counted(self.count, self.now, 0, call.refused)
        until = self.now + call.budget
        if until > self.until:
            self.until = until
            self.changes |= {"until": str(until), "by": call.by, "by_at": str(self.now)}
            for place, ask in enumerate(self.asks):
                # The first call leaves then, and the next ones as from an empty bucket.
                full = until + ask.reach - ask.unit
                if not ask.is_window and full > self.lines[place].full:
                    self._write(place, Line(full))
        return self._done(Reply(Verdict.GO, self.now, self.until))

    def lift(self) -> Done:
        """The next call leaves now, unless a window is full of calls that have left.

        What was booked ahead is taken for moments of a clock that has stepped back since.
        """
        self.changes |= {"until": "0", "lobby": "0"}
        self.until = self.lobby = 0
        for place, (ask, line) in enumerate(zip(self.asks, self.lines, strict=True)):
            full = self.now + ask.reach - ask.unit
            left = tuple(pair for pair in line.log if pair[0] <= self.now)
            if full < line.full or left != line.log:
                self._write(place, Line(min(full, line.full), left))
        return self._done(Reply(Verdict.GO, self.now, self.now))

    def _add(self, at: int) -> None:
        for place, ask in enumerate(self.asks):
            self._write(place, lines.booked(self.lines[place], ask, at, self.now))

    def _write(self, place: int, line: Line) -> None:
        self.lines[place] = line
        self.changes[name(self.asks[place])] = lines.written(line, self.asks[place])

    def needed(self) -> int:
        """For how long from now on."""
        held = (lines.ends(line, ask) for ask, line in zip(self.asks, self.lines, strict=True))
        return max(self.now, self.until, self.lobby, *held) - self.now + KEPT

    def _done(self, reply: Reply, share: Page | None = None) -> Done:
        if share is None:
            return Done(reply, self.changes, {}, self.needed())
        return Done(reply, self.changes, share.changes, self.needed(), share.needed())


def name(ask: Ask) -> str:
    """The field in which a limit's line is."""
    return f"l{ask.ident}"


def number(fields: Fields, field: str) -> int:
    """A field's number, 0 if there is none."""
    text = fields.get(field, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def counted(text: str, now: int, calls: int, refused: int) -> str:
    """Calls and refusals of this hour and of the one before, with more of them."""
    hour, *counts = hours(text)
    this = now // HOUR
    if hour != this:
        counts = [0, 0, *counts[:2]] if hour == this - 1 else [0] * 4
    counts[0] += calls
    counts[1] += refused
    return " ".join(map(str, [this, *counts]))


def hours(text: str) -> list[int]:
    """The hour, its calls and refusals, and those of the hour before."""
    parts = text.split(" ")
    if len(parts) != 5 or not all(part.isascii() and part.isdigit() for part in parts):
        return [0] * 5
    return [int(part) for part in parts]
