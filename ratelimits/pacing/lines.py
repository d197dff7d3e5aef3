"""What is booked of one limit: how it is written down, when there is room, what a call adds.

A bucket is one time, as in the generic cell rate algorithm (ITU-T I.371): when all that was booked
has come back. A window is a list of moments and units, the last ones that any window could hold.
The script gate.lua does the same.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

from .calls import Ask, Told

# So many moments of a window are kept as they are; of more, those within one of so many slices of
# the window are kept as the latest of them, so that none comes back too early.
MOST = SLICES = 256


class Line(NamedTuple):
    """What is booked: until `full` of a bucket; the moments of a window, in their order."""

    full: int = 0
    log: tuple[tuple[int, int], ...] = ()


def read(text: str, ask: Ask, now: int) -> Line:
    """What a field says. Of another kind of limit, or unreadable: nothing."""
    kind, *parts = text.split(" ")
    try:
        if kind == "w" and ask.is_window:
            pairs = [part.split(":") for part in parts]
            return Line(0, tuple((int(at), int(units)) for at, units in pairs))
        if kind == "b" and not ask.is_window:
            full, unit = int(parts[0]), int(parts[1])
            if unit != ask.unit and full > now:
                # The rate was edited: what was used stays, and comes back as fast as it does now.
                full = now + math.floor(float(full - now) * ask.unit / unit)
            return Line(full)
    except (ValueError, IndexError, ZeroDivisionError):
        pass
    return Line()


def written(line: Line, ask: Ask) -> str:
    """The field that says it."""
    if ask.is_window:
        return " ".join(["w", *(f"{at}:{units}" for at, units in line.log)])
    return f"b {line.full} {ask.unit}"


def earliest(line: Line, ask: Ask, now: int, guard: int, until: int = 0) -> int:
    """The first moment from now on at which the call has room. First come, first served.

    Nobody knows how much of a window is left when a block ends: for the length of one from
    `until` on, its calls leave one after the other.
    """
    if not ask.is_window:
        if line.full + guard <= now:
            return now
        return max(now, max(line.full, now) + ask.need - ask.reach)
    last = line.log[-1][0] if line.log else 0
    at = max(now, until, last)
    if at < until + ask.window:
        at = max(at, last + ask.unit)
    held = [(time, units) for time, units in line.log if time > at - ask.window]
    total = sum(units for _, units in held)
    for time, units in held:
        if total + ask.units <= ask.quota:
            break
        at, total = max(at, time + ask.window), total - units
    return at


def booked(line: Line, ask: Ask, at: int, now: int) -> Line:
    """With a call at a moment that earliest() allows."""
    if not ask.is_window:
        return Line(max(line.full, now, at) + ask.need)
    log = [pair for pair in line.log if pair[0] > at - ask.window]
    size = max(1, ask.window // SLICES)
    if len(log) >= MOST and log[-1][0] // size == at // size:
        return Line(0, (*log[:-1], (at, log[-1][1] + ask.units)))
    return Line(0, (*log, (at, ask.units)))


def put_off(line: Line, ask: Ask, slot: int, now: int) -> Line:
    """With a call that was booked for `slot` and leaves now: its units come back later, too.

    Of a bucket they do not: meanwhile others have flowed in.
    """
    if not ask.is_window or (slot, ask.units) not in line.log:
        return line
    log = list(line.log)
    log.remove((slot, ask.units))
    log.insert(bisect_right([time for time, _ in log], now), (now, ask.units))
    return Line(0, tuple(log))


def corrected(line: Line, ask: Ask, told: Told, now: int) -> Line:
    """We never own more than the vendor says is left."""
    left = now - told.ago
    if not ask.is_window:
        return Line(max(line.full, left + ask.reach - told.remaining * ask.unit))
    known = sum(units for at, units in line.log if at > left - ask.window)
    missing = ask.quota - told.remaining - known
    # Somebody else's, at a moment that lets them come back when the vendor says so.
    at = left + min(told.reset, ask.window) - ask.window
    if missing <= 0 or at <= now - ask.window:
        return line
    place = bisect_right([time for time, _ in line.log], at)
    return Line(0, (*line.log[:place], (at, missing), *line.log[place:]))


def ends(line: Line, ask: Ask) -> int:
    """From when on the line is as if it were not there."""
    if not ask.is_window:
        return line.full
    return line.log[-1][0] + ask.window if line.log else 0
