"""What a process that starts now meets when it asks the store, as impatiently as requests do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from ratelimits.catalog import plans_key
from ratelimits.conf import conf
from ratelimits.exceptions import RateLimitError
from ratelimits.stores import get_store
from ratelimits.stores.guarded import GuardedStore

from .findings import Finding

# What becomes of requests while the store is away.
DOES = {
    "local": "each process counts by itself",
    "allow": "requests pass uncounted",
    "deny": "requests get a 503",
}


def look() -> Iterator[Finding]:
    store = get_store()
    if not isinstance(store, GuardedStore):
        return
    # A fault opens the breaker, which is what is looked at.
    with suppress(RateLimitError):
        store.versions([plans_key()])
    is_open = store.breaker.is_open
    value = {"open": is_open, "store_failure": conf.STORE_FAILURE}
    does = DOES.get(conf.STORE_FAILURE, "")
    if not is_open:
        text = f"closed; while the store is away, {does}, unless a limit says otherwise"
        yield Finding("breaker", "ok", text, value=value)
        return
    text = f"open: {does}, unless a limit says otherwise"
    advice = "It closes by itself within two seconds of the store's return."
    yield Finding("breaker", "problem", text, advice, value)
