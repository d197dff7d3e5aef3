"""Reading how long to wait, and what is left, from the fields of any server's response.

Headers may be any mapping or pairs of names and values. Nothing here raises, whatever they hold,
and no wait is negative, infinite or a guess: what can't be read is as if it had not been sent.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from . import dialects, structured
from .fields import fields_of
from .quotas import Quota
from .times import FIRST_MOMENT, http_date, number, seconds_until, until

MILLISECONDS = ("retry-after-ms", "x-ms-retry-after-ms")


def parse_wait(
    headers: Any, now: float | None = None, *, status: int | None = None
) -> float | None:
    """Seconds to wait from the receipt of a response; 0 if that is over, None if none is told.

    `now` is the local time of the receipt, in seconds since the epoch. Moments are read against
    the response's own `Date`, so that a wrong local clock does not matter. What is told by name
    goes first: Retry-After (draft-11, section 7), in milliseconds before seconds. Else what the
    limits say that have nothing left; with a `status` of 429 also those that do not tell it.
    """
    fields = fields_of(headers)
    there = _their_time(fields, time.time() if now is None else now)
    told = _retry_after(fields, there)
    if told is not None:
        return told
    refused = (0, None) if status == 429 else (0,)
    empty = [quota for quota in _quotas(fields, there) if quota.remaining in refused]
    waits = [quota.reset for quota in empty if quota.reset is not None]
    return float(max(waits)) if waits else None


def parse_quota(headers: Any, now: float | None = None) -> list[Quota]:
    """What a response says of the limits that apply to the caller; empty if it says nothing.

    `now` as for parse_wait().
    """
    fields = fields_of(headers)
    return _quotas(fields, _their_time(fields, time.time() if now is None else now))


def _quotas(fields: Mapping[str, str], there: float) -> list[Quota]:
    if _age(fields) > 0:
        # From a cache: the numbers are another response's (draft-11, section 7.3).
        return []
    # Where a server sends both, the older fields say the same in fewer words.
    told = list(structured.amounts_of(fields, there)) or dialects.quotas_of(fields, there)
    return structured.joined(told, structured.policies_of(fields))


def _retry_after(fields: Mapping[str, str], there: float) -> float | None:
    for name in MILLISECONDS:
        milliseconds = number(fields.get(name, ""))
        if milliseconds is not None:
            # Above that it is no duration here either.
            is_moment = milliseconds >= FIRST_MOMENT
            return until(milliseconds, there) if is_moment else milliseconds / 1000
    text = fields.get("retry-after", "")
    parts = text.split(",")
    if len(parts) > 1 and all(number(part) is not None for part in parts):
        # Two lines, of a server and of what stands before it.
        waits = [seconds_until(part, there) for part in parts]
        return max(wait for wait in waits if wait is not None)
    return seconds_until(text, there)


def _their_time(fields: Mapping[str, str], now: float) -> float:
    """What the server's clock says, unless the response has lain in a cache since."""
    date = http_date(fields.get("date", ""))
    return now if date is None or date < FIRST_MOMENT or _age(fields) > 0 else date


def _age(fields: Mapping[str, str]) -> float:
    return number(fields.get("age", "")) or 0.0


__all__ = ["Quota", "parse_quota", "parse_wait"]
