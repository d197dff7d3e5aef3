"""Which bucket a throttle of DRF's kind counts in, and what it can tell of it."""

from __future__ import annotations

import math
import secrets
from functools import lru_cache
from typing import Any

from django.core.cache.backends.base import BaseCache
from django.core.exceptions import ImproperlyConfigured
from rest_framework import throttling

from ratelimits.addresses import address_of
from ratelimits.entering import InCode
from ratelimits.keys import digest
from ratelimits.limits import SECOND, Limit, Owner
from ratelimits.rates import MAX_QUOTA, Rate
from ratelimits.stores import counts_alone, is_in_memory
from ratelimits.stores.base import Slot
from ratelimits.tenants import by_user
from ratelimits.validation import MAX_LOG

from .overrides import OURS
from .passes import Pass

MARK = "ratelimits.mark"
# Where the classes are of whose keys it is known what is in them.
KNOWN = (throttling.__name__, OURS)


def bucket_of(throttle: Any, request: Any, passing: Pass) -> InCode:
    """The limit of a throttle, and whose bucket its cache key stands for.

    Like DRF's, throttles with one key and one window share a bucket, whatever their rates.
    """
    rate = _rate(throttle)
    # DRF keeps a log. One of so many requests would be too long.
    algorithm = "sliding_log" if (rate.quota or 0) <= MAX_LOG else "sliding_counter"
    subject = digest("drf", str(throttle.key), _mark(throttle))
    ident = passing.name(subject, f"drf:{algorithm}:{rate.window}")
    name = str(throttle.scope or type(throttle).__name__)
    owner = _owner(throttle, request)
    per = "address" if owner.kind == "address" else "tenant"
    return InCode(Slot(_limit(name, rate, algorithm, per, ident), subject), owner)


def _rate(throttle: Any) -> Rate:
    quota, window = throttle.num_requests, throttle.duration
    try:
        # DRF lets pass as long as the requests before are fewer.
        number = math.ceil(max(0, min(quota, MAX_QUOTA)))
        if int(window) == window:
            return Rate(number, int(window))
    except ValueError:
        pass
    name = type(throttle).__name__
    raise ImproperlyConfigured(
        f"{name}.parse_rate() gave {quota!r} and {window!r}, not a number and whole seconds of at "
        "most 366 days."
    )


# The same one again, since others keep by it what they made of it.
@lru_cache(maxsize=1024)
def _limit(name: str, rate: Rate, algorithm: str, per: str, ident: str) -> Limit:
    # Without a scope of ours: nothing about it is for the database to say.
    return Limit(name, rate, algorithm=algorithm, per=per, ident=ident)


def _owner(throttle: Any, request: Any) -> Owner:
    """As whom people know the caller. What is in a project's own key may be secret."""
    kind: Any = type(throttle)
    if getattr(kind.get_cache_key, "__module__", None) not in KNOWN:
        return Owner("by", kind.__name__)
    user = by_user(request)
    if user is None:
        return Owner("address", address_of(request))
    return Owner("tenant", user)


def _mark(throttle: Any) -> str:
    """Ends with `cache.clear()`, by which tests of projects forget what DRF's throttles counted.

    Only where both are in the memory of one process. A shared cache forgets our counts itself.
    """
    cache = getattr(getattr(throttle.cache, "get", None), "__self__", None)
    if not isinstance(cache, BaseCache) or not counts_alone() or not is_in_memory(cache):
        return ""
    cache.add(MARK, secrets.token_hex(8), timeout=None)
    return str(cache.get(MARK))


def history_of(throttle: Any) -> list[Any]:
    """Times for as many requests as were counted in the window, as far as that is known."""
    decision = throttle.decision
    outcome = decision.outcomes[-1] if decision is not None and decision.outcomes else None
    if outcome is None:
        return []
    used = outcome.limit.quota - outcome.remaining
    times = [throttle.now] * used
    if times and not outcome.allowed:
        times[-1] += (outcome.wait_us or 0) / SECOND - throttle.duration
    return times
