"""A flood of callers who were never seen: memory stays bounded, and nobody's count is lost."""

from __future__ import annotations

import gc
import os
import random
import tracemalloc
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse

from ratelimits import addresses, catalog, edits, limiter, telling
from ratelimits.middleware import RateLimitMiddleware
from ratelimits.signals import nearly_used_up
from ratelimits.stores import forget_stores, get_store
from ratelimits.stores.guarded import GuardedStore
from ratelimits.stores.local import LocalStore
from ratelimits.stores.memory import MemoryStore
from ratelimits.usage.recorder import recorder
from tests.doors import make_plan, per_address
from tests.servers import free_port
from tests.settings import redis_caches

pytestmark = pytest.mark.django_db(transaction=True)
VICTIM = "192.0.2.1"
AWAY = {"the store": False, "while Redis is away": True}
# Three times as many as a process keeps buckets of.
MANY = 300_000


@pytest.fixture(params=AWAY)
def in_memory(request: pytest.FixtureRequest, settings: Any) -> Callable[[], MemoryStore]:
    """Counting is this process's own affair: by choice, or by necessity."""
    make_plan("api 1/d")
    per_address("2/d")
    if AWAY[request.param]:
        settings.CACHES = redis_caches(f"redis://127.0.0.1:{free_port()}/0")

    def store() -> MemoryStore:
        guarded = get_store()
        assert isinstance(guarded, GuardedStore)
        found = guarded._local() if AWAY[request.param] else guarded.store
        assert isinstance(found, MemoryStore)
        return found

    return store


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """Somebody listens, so that what was told has to be remembered."""
    told: list[str] = []

    def receiver(outcome: Any, **kwargs: Any) -> None:
        told.append(outcome.name)
        del told[:-10]

    nearly_used_up.connect(receiver)
    yield told
    nearly_used_up.disconnect(receiver)


def view(request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=200 if limiter.take(request).allowed else 429)


door = RateLimitMiddleware(view)
Call = Callable[[str], bool]


def request_from(address: str) -> HttpRequest:
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": address}
    return request


def through_the_door(address: str) -> bool:
    response: Any = door(request_from(address))
    return bool(response.status_code == 200)


def by_the_limiter(address: str) -> bool:
    return limiter.take(request_from(address)).allowed


def flood(rng: random.Random, calls: int, call: Call) -> None:
    for number in range(calls):
        call(ipv6(rng) if number % 2 else ipv4(rng))


def ipv6(rng: random.Random) -> str:
    return f"2001:{rng.getrandbits(16):x}:{rng.getrandbits(16):x}:{rng.getrandbits(16):x}::1"


def ipv4(rng: random.Random) -> str:
    """Never the victim's."""
    return f"10.{rng.getrandbits(8)}.{rng.getrandbits(8)}.{rng.getrandbits(8)}"


def use_up(call: Call) -> None:
    assert [call(VICTIM) for _ in range(2)] == [True, False]


def test_memory_stays_bounded(
    in_memory: Callable[[], MemoryStore], heard: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for few, so that a small flood is one."""
    for kind in (MemoryStore, LocalStore):
        monkeypatch.setattr(kind.__init__, "__defaults__", (500,))
    monkeypatch.setattr(catalog, "MOST_ADDRESSES", 300)
    monkeypatch.setattr(telling, "MOST", 100)
    monkeypatch.setattr(recorder, "most_kept", 200)
    monkeypatch.setattr(recorder, "most_waiting", 100)
    recorder.forget()
    few = lru_cache(maxsize=300)(addresses.normalised.__wrapped__)
    monkeypatch.setattr(addresses, "normalised", few)
    forget_stores()
    rng = random.Random(1)
    use_up(through_the_door)
    tracemalloc.start()
    try:
        before = traced_after(lambda: flood(rng, 1000, through_the_door))
        grown = traced_after(lambda: flood(rng, 3000, through_the_door)) - before
    finally:
        tracemalloc.stop()
    # A caller of whom anything is kept takes a hundred bytes, and most take thousands.
    assert grown < 3000 * 50
    assert len(in_memory()) <= 500 + 4
    assert (len(edits.shared._addresses), len(telling.lately)) == (300, 100)
    assert not through_the_door(VICTIM)
    assert heard


def traced_after(run: Callable[[], None]) -> int:
    """Bytes of memory that what was made since tracing began takes after a run."""
    run()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.long
def test_hundreds_of_thousands_of_addresses(
    in_memory: Callable[[], MemoryStore], heard: list[str]
) -> None:
    rng = random.Random(2)
    use_up(by_the_limiter)
    flood(rng, MANY // 3, by_the_limiter)
    before = resident()
    flood(rng, MANY * 2 // 3, by_the_limiter)
    # Less than 50 bytes for each.
    assert resident() - before < MANY * 2 // 3 * 50
    assert len(in_memory()) <= 100_000 + 4
    assert len(edits.shared._addresses) == len(telling.lately) == 10_000
    assert not by_the_limiter(VICTIM)


def resident() -> int:
    """Bytes of memory that this process takes."""
    gc.collect()
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
