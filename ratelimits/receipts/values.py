"""What a receipt says, and how it is written.

Version 1, big-endian: the version, flags, the status, microseconds since the epoch, the cost, what
was left, the burst, seconds to wait, random bits, codes for algorithm and whose limit it was, the
lengths of the texts, and the texts in UTF-8.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from ratelimits.clock import microseconds
from ratelimits.limits import Decision, Limit, Occasion

VERSION = 1
LOCAL, ANONYMOUS, NEVER, HAS_BURST = 1, 2, 4, 8
ALGORITHMS = ("", "token_bucket", "fixed_window", "sliding_log", "sliding_counter")
PERS = ("", "tenant", "address", "everyone")
MOST, LONGEST = 2**63 - 1, 2**32 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

# The most bytes of each text. With these a receipt has fewer than 500 characters.
TENANT, ADDRESS, PATH, SCOPE, NAME, RATE = 88, 44, 64, 28, 36, 24
_HEAD = Struct(">BBHQQQQLLBB6B")
CUT = "…"
_CUT = CUT.encode()


NOWHERE = Occasion()


class Receipt(NamedTuple):
    """One refusal, as it was. Texts that were too long end in an ellipsis.

    `limit` is empty if no limit decided, but that the store could not be asked. `retry_after`
    is in seconds, as it was told; None: never.
    """

    at: datetime
    status: int
    occasion: Occasion
    cost: int
    remaining: int = 0
    retry_after: int | None = None
    limit: str = ""
    rate: str = ""
    burst: int | None = None
    algorithm: str = ""
    per: str = ""

    @property
    def age(self) -> timedelta:
        """Since then. Negative if another machine's clock is ahead of this one's."""
        return EPOCH + timedelta(microseconds=microseconds()) - self.at


class OfLimit(NamedTuple):
    """What receipts tell of a limit, the same each time."""

    has_burst: int
    burst: int
    codes: tuple[int, int]
    name: bytes
    rate: bytes


NO_LIMIT = OfLimit(0, 0, (0, 0), b"", b"")


def pack(decision: Decision) -> bytes:
    occasion, deciding = decision.occasion or NOWHERE, decision.deciding
    tenant, address, scope, path, local = occasion
    limit = NO_LIMIT if deciding is None else _of_limit(deciding.limit)
    cost, remaining = (
        (decision.cost, 0) if deciding is None else (deciding.cost, deciding.remaining)
    )
    retry_after = decision.retry_after
    flags = (local and LOCAL) | limit.has_burst
    if tenant is None:
        flags |= ANONYMOUS
    if retry_after is None:
        flags |= NEVER
    texts = (
        _fitted(tenant or "", TENANT),
        _fitted(address, ADDRESS),
        _fitted(path, PATH),
        _fitted(scope, SCOPE),
        limit.name,
        limit.rate,
    )
    head = _HEAD.pack(
        VERSION,
        flags,
        decision.status,
        microseconds(),
        min(cost, MOST),
        remaining,
        limit.burst,
        min(retry_after or 0, LONGEST),
        # Two refusals of one moment are two.
        random.getrandbits(32),
        *limit.codes,
        *map(len, texts),
    )
    return b"".join((head, *texts))


@lru_cache(maxsize=1024)
def _of_limit(limit: Limit) -> OfLimit:
    codes = ALGORITHMS.index(limit.algorithm), PERS.index(limit.per)
    has_burst = 0 if limit.burst is None else HAS_BURST
    name, rate = _fitted(limit.name, NAME), _fitted(limit.rate.canonical(), RATE)
    return OfLimit(has_burst, min(limit.burst or 0, MOST), codes, name, rate)


def unpack(packed: bytes) -> Receipt | None:
    """What was packed; None for a version that is not known here."""
    if packed[0] != VERSION:
        return None
    _, flags, status, at, cost, remaining, burst, retry_after, _, algorithm, per, *lengths = (
        _HEAD.unpack_from(packed)
    )
    texts, place = [], _HEAD.size
    for length in lengths:
        # A character that was cut in two is left out.
        texts.append(packed[place : place + length].decode(errors="ignore"))
        place += length
    tenant, address, path, scope, name, rate = texts
    whose = None if flags & ANONYMOUS else tenant
    return Receipt(
        at=EPOCH + timedelta(microseconds=at),
        status=status,
        occasion=Occasion(whose, address, scope, path, bool(flags & LOCAL)),
        cost=cost,
        remaining=remaining,
        retry_after=None if flags & NEVER else retry_after,
        limit=name,
        rate=rate,
        burst=burst if flags & HAS_BURST else None,
        algorithm=ALGORITHMS[algorithm],
        per=PERS[per],
    )


def _fitted(text: str, size: int) -> bytes:
    encoded = text.encode(errors="replace")
    return encoded if len(encoded) <= size else encoded[: size - len(_CUT)] + _CUT
