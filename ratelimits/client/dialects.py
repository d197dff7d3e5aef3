"""The fields that vendors made up: `X-RateLimit-Remaining`, and what became of it.

Their names are a vendor, "ratelimit", a part that says what the number is, and a bucket, in any
order: `X-RateLimit-Reset-Requests`, `anthropic-ratelimit-requests-reset`. The numbers of several
windows may stand in one field, by their place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from .quotas import Quota
from .times import number, seconds_until

# What a part of a name says that the number is.
PARTS = {
    "limit": "limit",
    "max": "limit",
    "remaining": "remaining",
    "reset": "reset",
    "resets": "reset",
    "resettime": "reset",
    "after": "reset-after",
    "used": "used",
    "period": "window",
    "dailylimit": "limit",
    "name": "name",
    "resource": "name",
}
# Those whose fields mean something else, or nothing that is counted here.
OTHERS = {"policy", "bucket", "scope", "observed", "reason", "interval"}
# Buckets that are called by their window, in seconds.
WINDOWS = {"secondly": 1, "second": 1, "minute": 60, "hour": 3600, "daily": 86400, "day": 86400}
NAME = re.compile(r"(?:^|-)rate-?limits?(?:-|$)")
SHOPIFY = "x-shopify-shop-api-call-limit"
# Zendesk's, for some of its resources.
TOTALS = re.compile(r"total=([0-9]+); remaining=([0-9]+); resets=([0-9]+)")


def quotas_of(fields: Mapping[str, str], now: float) -> list[Quota]:
    """What the fields say, by bucket; `now` is the server's time since the epoch."""
    buckets: dict[str, dict[str, str]] = {}
    found = list(_in_one(fields, now))
    for field, text in fields.items():
        place = _place(field)
        if place is not None and not TOTALS.fullmatch(text):
            bucket, part = place
            # The plainest name of a number, which comes first where there are several.
            buckets.setdefault(bucket, {}).setdefault(part, text)
    for bucket, told in buckets.items():
        found += _windows(bucket, told, now)
    return found


def _place(field: str) -> tuple[str, str] | None:
    """The bucket, and which of its numbers a field has."""
    match = NAME.search(field)
    if match is None or field in ("ratelimit", "ratelimit-policy"):
        return None
    before = [word for word in field[: match.start()].split("-") if word.isdecimal()]
    words = [word for word in field[match.end() :].split("-") if word]
    if OTHERS & set(words):
        return None
    parts = [PARTS[word] for word in words if word in PARTS]
    names = [word for word in words if word not in PARTS]
    # X-Rate-Limit alone is the limit.
    return "-".join(before + names), parts[-1] if parts else "limit"


def _windows(bucket: str, told: Mapping[str, str], now: float) -> Iterator[Quota]:
    """One quota, or one for each place of parallel lists.

    A limit alone is a list where its policies follow it, as up to draft-03.
    """
    columns = {part: _column(text) for part, text in told.items()}
    places = max(len(columns.get(part, "")) for part in ("remaining", "reset")) or 1
    for place in range(places):
        one = {
            part: column[place if len(column) == places else 0] for part, column in columns.items()
        }
        name = bucket or told.get("name", "")
        if places > 1:
            name = "-".join(filter(None, [name, str(place + 1)]))
        quota = _quota(name, one, now)
        if quota != Quota(name):
            yield quota._replace(window=quota.window or WINDOWS.get(bucket))


def _column(text: str) -> list[str]:
    """The members of a list without their parameters. A date is one member, comma and all."""
    members = [member.partition(";")[0].strip() for member in text.split(",")]
    return members if all(number(member) is not None for member in members) else [text]


def _quota(name: str, told: Mapping[str, str], now: float) -> Quota:
    limit, remaining = _units(told.get("limit", "")), _units(told.get("remaining", ""))
    used = _units(told.get("used", ""))
    if remaining is None and limit is not None and used is not None:
        remaining = max(0, limit - used)
    # Without the server's clock in it, where there is a choice.
    reset = seconds_until(told.get("reset-after", ""), now)
    if reset is None:
        reset = seconds_until(told.get("reset", ""), now)
    return Quota(name, limit, remaining, reset, number(told.get("window", "")) or None)


def _units(text: str) -> int | None:
    """Whole units. Of a fraction that is left nobody can take anything."""
    found = number(text)
    return None if found is None else math.floor(found)


def _in_one(fields: Mapping[str, str], now: float) -> Iterator[Quota]:
    """Vendors who put all of a limit into one field."""
    used, slash, limit = fields.get(SHOPIFY, "").partition("/")
    if slash:
        yield _quota("", {"used": used, "limit": limit}, now)
    for field, text in fields.items():
        match = TOTALS.fullmatch(text) if NAME.search(field) else None
        if match is not None:
            parts = dict(zip(("limit", "remaining", "reset"), match.groups(), strict=True))
            yield _quota(NAME.split(field)[-1], parts, now)
