"""Whether the store counts, how fast, and by which clock; what its server says of itself."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from secrets import token_hex
from statistics import median
from typing import NamedTuple

from django.core.cache.backends.dummy import DummyCache
from django.utils.translation import gettext as _

from ratelimits.algorithms import Operation
from ratelimits.clock import microseconds
from ratelimits.conf import conf
from ratelimits.exceptions import InvalidStore, RateLimitError
from ratelimits.keys import digest
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.stores import backend_of, fitting
from ratelimits.stores.base import Group, Slot, Store
from ratelimits.stores.facts import (
    ClusterFacts,
    DatabaseFacts,
    Facts,
    MemoryFacts,
    RedisFacts,
)

from . import database, memcached, redis, shared
from .findings import Finding

# Longer than requests wait, to tell a slow server from one that is away.
PATIENCE = 1.0
ROUNDS = 7
# A difference of clocks from which on it matters, in seconds; more than a round trip's doubt.
CLOCKS = 0.5


class Rounds(NamedTuple):
    """How long takes took, in milliseconds, and how far the store's clock is ahead, in seconds.

    The first one also had to connect.
    """

    first: float
    times: Sequence[float]
    ahead: float


def look() -> Iterator[Finding]:
    alias = conf.CACHE
    try:
        backend = backend_of(alias)
        if isinstance(backend, DummyCache):
            yield _dummy(alias)
            return
        store = fitting(backend, alias, max(conf.STORE_TIMEOUT, PATIENCE))
        address = store.address
    except (InvalidStore, ImportError) as error:
        yield Finding("store", "problem", str(error), _("Run: manage.py check --tag ratelimits"))
        return
    kind = type(store).__name__.removesuffix("Store").lower()
    value = {"alias": alias, "kind": kind, "address": address}
    yield Finding(
        "store", "ok", _('%(kind)s, %(address)s (cache "%(alias)s")') % value, value=value
    )
    with closing(store):
        yield from _counting(store, alias)


def _dummy(alias: str) -> Finding:
    value = {"alias": alias, "kind": "dummy", "address": ""}
    text = _('The cache "%s" is a DummyCache: nothing is counted, and nobody limited.') % alias
    advice = _("Use Redis, or any other cache for development.")
    return Finding("store", "warning", text, advice, value)


def _counting(store: Store, alias: str) -> Iterator[Finding]:
    try:
        rounds = _rounds(store)
    except RateLimitError as error:
        advice = _(
            'Start it, or correct the address: CACHES["%s"]. Meanwhile STORE_FAILURE decides.'
        )
        advice %= alias
        yield Finding("store.counts", "problem", str(error), advice, {"counts": False})
        return
    yield Finding("store.counts", "ok", _("It counts."), value={"counts": True})
    yield _latency(rounds)
    try:
        facts = store.facts()
    except Exception as error:
        # It went away meanwhile; or tells what nobody expects.
        text = _("It counts, but can't be asked more: %r") % error
        yield Finding("store.server", "problem", text)
        return
    yield _clock(rounds.ahead, _has_clock(facts))
    yield from _judged(facts)
    # If a part of it is away, that was told.
    with suppress(RateLimitError):
        yield from shared.look(store)


def _judged(facts: Facts) -> Iterator[Finding]:
    for judge in (redis.judge, memcached.judge, database.judge, _memory):
        yield from judge(facts)


def _rounds(store: Store) -> Rounds:
    """Takes as requests do them, from a bucket of their own that is gone after two seconds."""
    limit = Limit("doctor", Rate(10 * ROUNDS, 1))
    group = Group((Slot(limit, digest("doctor", token_hex(8))),))
    times, ahead = [], 0.0
    for _round in range(ROUNDS):
        sent, started = microseconds(), time.perf_counter()
        answer = store.run(Operation.TAKE, group, [1])
        times.append(1000 * (time.perf_counter() - started))
        # When the server looked at its clock is anyone's guess, within the round trip.
        ahead = (answer.now - (sent + microseconds()) / 2) / 1_000_000
    store.reset(group)
    return Rounds(times[0], times[1:], ahead)


def _latency(rounds: Rounds) -> Finding:
    middle, slowest = median(rounds.times), max(rounds.times)
    allowed = 1000 * conf.STORE_TIMEOUT
    value = {
        "first_ms": round(rounds.first, 3),
        "median_ms": round(middle, 3),
        "worst_ms": round(slowest, 3),
        "timeout_ms": allowed,
        "rounds": len(rounds.times),
    }
    text = _(
        "a take in %(middle)s ms (median of %(takes)s takes), %(slowest)s ms (the slowest), "
        "%(first)s ms (the first, with connecting); requests wait %(allowed)s ms at most"
    ) % {
        "middle": f"{middle:.2f}",
        "takes": len(rounds.times),
        "slowest": f"{slowest:.2f}",
        "first": f"{rounds.first:.2f}",
        "allowed": f"{allowed:g}",
    }
    if middle >= allowed:
        advice = _(
            "Requests give up before it answers. Find out what slows it, or raise STORE_TIMEOUT."
        )
        return Finding("store.latency", "problem", text, advice, value)
    if max(slowest, rounds.first) >= allowed:
        advice = _(
            "Some requests give up before it answers, and the breaker opens: see STORE_TIMEOUT."
        )
        return Finding("store.latency", "warning", text, advice, value)
    return Finding("store.latency", "ok", text, value=value)


def _has_clock(facts: Facts) -> bool:
    """Whether counts go by a clock of the server's."""
    is_postgresql = isinstance(facts, DatabaseFacts) and facts.vendor == "postgresql"
    return isinstance(facts, (RedisFacts, ClusterFacts)) or is_postgresql


def _clock(ahead: float, is_servers: bool) -> Finding:
    if not is_servers:
        text = _("counts go by each machine's own clock: let NTP set those of several machines")
        return Finding("store.clock", "ok", text, value={"of": "machine", "ahead_seconds": 0.0})
    value = {"of": "server", "ahead_seconds": round(ahead, 3)}
    if ahead > 0:
        text = _("the store's clock is %s s ahead of this machine's")
    else:
        text = _("the store's clock is %s s behind this machine's")
    text %= f"{abs(ahead):.3f}"
    if abs(ahead) < CLOCKS:
        return Finding("store.clock", "ok", text, value=value)
    advice = _(
        "Counts go by the store's clock and are right; when a tenant's limit ends goes by each "
        "machine's. Let NTP set both."
    )
    return Finding("store.clock", "warning", text, advice, value)


def _memory(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts, MemoryFacts):
        value = {"buckets": facts.buckets, "most": facts.most}
        text = _("each process counts by itself, %s buckets at most") % f"{facts.most:,}"
        yield Finding("store.memory", "ok", text, value=value)
