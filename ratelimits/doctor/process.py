"""Whether requests get an answer from the store, as impatient as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from django.utils.translation import gettext as _

from ratelimits.catalog import plans_key
from ratelimits.conf import conf
from ratelimits.exceptions import RateLimitError
from ratelimits.stores import backend_of, fitting, get_store
from ratelimits.stores.guarded import GuardedStore

from .findings import Finding


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
    does = _does()
    if value["answers_in_time"] and not value["open"]:
        text = _("closed; while the store is away, %s, unless a limit says otherwise") % does
        yield Finding("breaker", "ok", text, value=value)
        return
    if value["open"]:
        text = _("open: %s, unless a limit says otherwise") % does
    else:
        text = _("open from the next request on: %s, unless a limit says otherwise") % does
    advice = _("It closes by itself within two seconds of the store's return.")
    yield Finding("breaker", "problem", text, advice, value)


def _does() -> str:
    """What becomes of requests while the store is away."""
    texts = {
        "local": _("each process counts its part by itself"),
        "allow": _("requests pass uncounted"),
        "deny": _("requests get a 503"),
    }
    return texts.get(conf.STORE_FAILURE, "")


def _answers_in_time() -> bool:
    """Not asked as requests do it, for which somebody might be woken up."""
    try:
        with closing(fitting(backend_of(conf.CACHE), conf.CACHE, conf.STORE_TIMEOUT)) as store:
            store.versions([plans_key()])
    except RateLimitError:
        return False
    return True
