"""The states of all limits of one caller as one value, in bytes.

A version byte, then an entry for each limit: what it is found by, its algorithm, when it
expires, its state, and how many hits of a sliding log follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import starmap
from struct import Struct, error
from typing import NamedTuple

from ratelimits.algorithms import State

FORMAT = b"\x01"
ENTRY = Struct(">4sBqQQQqI")
HIT = Struct(">qI")


class Entry(NamedTuple):
    """The state of one limit. `expires` is in microseconds, by the clock that counted it."""

    code: int
    expires: int
    state: State


def packed(entries: Mapping[bytes, Entry]) -> bytes:
    parts = [FORMAT]
    for ident, (code, expires, state) in entries.items():
        used, part, unit, time, hits = state
        parts.append(ENTRY.pack(ident, code, expires, used, part, unit, time, len(hits)))
        parts.extend(starmap(HIT.pack, hits))
    return b"".join(parts)


def unpacked(value: bytes | None) -> dict[bytes, Entry]:
    """The entries by what they are found by; none if the value is of another format."""
    if not value or value[:1] != FORMAT:
        return {}
    entries, at = {}, 1
    try:
        while at < len(value):
            ident, code, expires, used, part, unit, time, count = ENTRY.unpack_from(value, at)
            at += ENTRY.size
            hits = value[at : at + count * HIT.size]
            at += count * HIT.size
            state = State(used, part, unit, time, tuple(HIT.iter_unpack(hits)))
            entries[ident] = Entry(code, expires, state)
    except error:
        # Cut short, or not ours: as good as nothing.
        return {}
    return entries
