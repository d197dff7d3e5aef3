"""The terms of other people's APIs, as values."""

from __future__ import annotations

from typing import NamedTuple

# Nothing waits for longer, in seconds: a year. Absurd numbers are no reason to fail.
LONGEST = 366 * 86400.0


class Pace(NamedTuple):
    """One limit of theirs: `quota` units per `window` microseconds, `burst` of them at once.

    `ident` finds what was used of it, whatever it is called. `kind` is "bucket" or "window"; a
    window has no burst but its quota. `per` is "credential", or "tenant": the share of each
    customer in whose name we call.
    """

    ident: str
    name: str
    kind: str
    quota: int
    window: int
    burst: int
    per: str = "credential"


class Terms(NamedTuple):
    """What an upstream allows, and how we go about it. Times in seconds.

    Nobody waits for longer than `max_wait`. `guard` is how much later than it must a call leaves,
    since calls overtake each other on their way. `statuses` are those of a refusal, besides 429.
    """

    slug: str
    paces: tuple[Pace, ...] = ()
    max_wait: float = 5.0
    guard: float = 0.05
    statuses: frozenset[int] = frozenset()
    base_url: str = ""
