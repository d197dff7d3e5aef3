"""Whether the store answers, how fast, and who shares it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.http import HttpRequest
from django.utils.formats import number_format

from ratelimits.admin.pages import PagesAdmin
from ratelimits.catalog import plans_key
from ratelimits.conf import conf
from ratelimits.exceptions import RateLimitError
from ratelimits.stores import get_store
from ratelimits.stores.base import Store
from ratelimits.stores.guarded import GuardedStore
from ratelimits.stores.processes import COUNTED_FOR
from ratelimits.usage.asking import ask
from ratelimits.words import count

ROUNDS = 3
# What a time that rounds to nothing is shown as, in milliseconds.
LEAST = 0.01


@dataclass(frozen=True)
class Answers:
    """How long it took, in milliseconds, and how many processes share it."""

    milliseconds: str
    is_slow: bool
    processes: str


@dataclass(frozen=True)
class Health:
    """`fault` is what is wrong, in the words of a client library. `kind` is "" for a dummy."""

    kind: str
    address: str
    alias: str
    allowed: str
    is_open: bool
    failure: str
    answers: Answers | None
    fault: str = ""


def look(request: HttpRequest, admin: PagesAdmin[Any]) -> Health:
    """See Panel."""
    guarded = get_store()
    if not isinstance(guarded, GuardedStore):
        return Health("", "", conf.CACHE, "", False, conf.STORE_FAILURE, None)
    store = guarded.store
    kind = type(store).__name__.removesuffix("Store")
    answers, fault = None, ""
    try:
        answers = ask(_answers)
    except RateLimitError as error:
        fault = str(error)
    return Health(
        kind,
        _address(store),
        conf.CACHE,
        number_format(f"{1000 * conf.STORE_TIMEOUT:g}"),
        guarded.breaker.is_open,
        conf.STORE_FAILURE,
        answers,
        fault,
    )


def _answers(store: Store) -> Answers:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        store.versions([plans_key()])
        times.append(1000 * (time.perf_counter() - started))
    middle = median(times)
    processes = conf.WORKERS or store.recent_processes(COUNTED_FOR)
    is_slow = middle > 1000 * conf.STORE_TIMEOUT
    return Answers(number_format(max(middle, LEAST), 2), is_slow, count(processes))


def _address(store: Store) -> str:
    try:
        return store.address
    except RateLimitError:
        # An address that no client can read.
        return ""
