"""Where usage is kept: how long, of how many callers, and under which names."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from datetime import datetime, timezone
from functools import lru_cache
from hashlib import blake2b

from django.core.signals import setting_changed

from ratelimits.keys import digest
from ratelimits.limits import Owner
from ratelimits.sealing import BrokenSeal, seal, unseal
from ratelimits.stores.usage import Pages

MINUTE, HOUR = 60, 3600
# For how long minutes and hours are kept.
MINUTES_KEPT = 3 * 60
HOURS_KEPT = 3 * 24
# Callers that are kept apart in each; of more, those who did least are added up.
MINUTE_CALLERS = 1000
HOUR_CALLERS = 5000
PURPOSE = "usage"
# The longest key that can be read back. No row of a tenant has a longer one.
LONGEST_KEY = 255


def now() -> int:
    """Seconds since the epoch, by this process's clock."""
    return int(time.time())


def pages_of(minute: int) -> Pages:
    """Where a minute is counted, given as its number since the epoch."""
    return Pages(
        minute_page(minute),
        hour_page(minute * MINUTE // HOUR),
        (MINUTES_KEPT + 1) * MINUTE,
        (HOURS_KEPT + 1) * HOUR,
    )


def minute_page(minute: int) -> str:
    """Of a minute since the epoch."""
    return digest("usage by minute", str(minute))


def hour_page(hour: int) -> str:
    """Of an hour since the epoch."""
    return digest("usage by hour", str(hour))


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


@lru_cache(maxsize=20_000)
def field_of(owner: Owner) -> bytes:
    """The name of a caller in the store, which only those who have the secret can read."""
    key = owner.key.encode("utf-8", "surrogatepass")
    if len(key) > 4 * LONGEST_KEY:
        # Not a tenant's that has a row: such keys are as long as somebody wants.
        key = key[:LONGEST_KEY] + b"..." + urlsafe_b64encode(blake2b(key, digest_size=6).digest())
    return seal(owner.kind.encode() + b":" + key, PURPOSE)


@lru_cache(maxsize=20_000)
def owner_of(field: bytes) -> Owner | None:
    """Who that is; None if it was written with another secret."""
    try:
        kind, _, key = unseal(field, PURPOSE).partition(b":")
    except BrokenSeal:
        return None
    return Owner(kind.decode(), key.decode("utf-8", "surrogatepass"))


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting in ("RATELIMITS", "SECRET_KEY"):
        field_of.cache_clear()
        owner_of.cache_clear()


setting_changed.connect(_forget, dispatch_uid="ratelimits.usage")
