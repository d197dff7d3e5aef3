"""Whether requests get an answer from the store, as impatient as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from ratelimits.catalog import plans_key
from ratelimits.conf import conf
from ratelimits.exceptions import RateLimitError
from ratelimits.stores import backend_of, fitting, get_store
from ratelimits.stores.guarded import GuardedStore

from .findings import Finding

# What becomes of requests while the store is away.
DOES = {
    "local": "each process counts its part by itself",
    "allow": "requests pass uncounted",
    "deny": "requests get a 503",
}


def look() -> Iterator[Finding]:
    store = get_store()
    if not isinstance(store, GuardedStore):
        return
    value = {
        # In this process, which a command has for itself.
        "open": store.breaker.is_open,
        "answers_in_time": _answers_in_time(),
        "store_failure": conf.STORE_FAILURE,
    }
    does = f"{DOES.get(conf.STORE_FAILURE, '')}, unless a limit says otherwise"
    if value["answers_in_time"] and not value["open"]:
        yield Finding("breaker", "ok", f"closed; while the store is away, {does}", value=value)
        return
    text = f"open{'' if value['open'] else ' from the next request on'}: {does}"
    advice = "It closes by itself within two seconds of the store's return."
    yield Finding("breaker", "problem", text, advice, value)


def _answers_in_time() -> bool:
    """Not asked as requests do it, for which somebody might be woken up."""
    try:
        with closing(fitting(backend_of(conf.CACHE), conf.CACHE, conf.STORE_TIMEOUT)) as store:
            store.versions([plans_key()])
    except RateLimitError:
        return False
    return True
