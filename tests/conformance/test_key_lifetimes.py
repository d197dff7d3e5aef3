"""Every key has a time to live: as long as it says something, and not much longer."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratelimits.algorithms import Operation
from ratelimits.stores.base import Group, Slot
from ratelimits.stores.redis import RedisStore
from tests.servers import RedisServer

from .examples import ALGORITHMS, examples
from .stores import NOON, SECOND, Calls, close, limit, redis_store

MARGIN = 1000


def lifetimes(server: RedisServer) -> dict[bytes, int]:
    """Milliseconds left of every key; negative for one without end."""
    client = server.client()
    return {key: client.pttl(key) for key in client.scan_iter()}


@pytest.mark.parametrize(("used", "ms"), [(1, 6_000), (5, 30_000), (10, 60_000)])
def test_a_bucket_lives_until_it_is_full(
    used: int, ms: int, redis_server: RedisServer, redis_only: RedisStore
) -> None:
    Calls(redis_only, limit("10/m")).take(used, at=None)
    (ttl,) = lifetimes(redis_server).values()
    assert ms - MARGIN < ttl <= ms + MARGIN


@pytest.mark.parametrize(
    ("algorithm", "windows"), [("fixed_window", 1), ("sliding_log", 1), ("sliding_counter", 2)]
)
def test_a_window_lives_until_it_has_ended(
    algorithm: str, windows: int, redis_server: RedisServer, redis_only: RedisStore
) -> None:
    calls = Calls(redis_only, limit("10/h", algorithm=algorithm))
    calls.take(10, at=None)
    ttls = lifetimes(redis_server).values()
    refused = calls.take(at=None)
    assert refused.wait_us is not None
    assert all(refused.wait_us / 1000 <= ttl <= windows * 3_600_000 + MARGIN for ttl in ttls)


def test_the_last_windows_weight_is_kept(redis_server: RedisServer, redis_only: RedisStore) -> None:
    """Also if nothing was taken in this window."""
    calls = Calls(redis_only, limit("10/h", algorithm="sliding_counter"))
    calls.take(10)
    calls.take(0, NOON + 3601 * SECOND)
    (ttl,) = lifetimes(redis_server).values()
    assert ttl > 3_599_000


operations = st.sampled_from([Operation.TAKE, Operation.TAKE, *Operation])
mixes = st.lists(st.tuples(operations, st.sampled_from([0, 1, 3, 50, 10**9])), max_size=12)


@examples(60)
@given(kinds=st.lists(st.sampled_from(ALGORITHMS), min_size=1, max_size=4), mix=mixes)
def test_any_mix_of_calls(
    kinds: list[str],
    mix: list[tuple[Operation, int]],
    redis_server: RedisServer,
    redis_only: RedisStore,
) -> None:
    """By the store's own clock: no key is without an end, or outlives its time to full."""
    redis_server.flush()
    limits = [limit(f"{20 + i}/m", str(i), algorithm=kind) for i, kind in enumerate(kinds)]
    calls = Calls(redis_only, *limits)
    for operation, cost in mix:
        calls.do(operation, cost, at=None)
        # A window of a minute may be carried over for one more.
        longest = 120_000 if "sliding_counter" in kinds else 60_000
        for key, ttl in lifetimes(redis_server).items():
            assert 0 < ttl <= longest + MARGIN, key


def test_a_key_lives_as_long_as_its_longest_limit(
    redis_server: RedisServer, redis_only: RedisStore
) -> None:
    """A call with fewer limits does not cut the life of those it does not know."""
    calls = Calls(redis_only, limit("10/h", "hour"), limit("10/s", "second"))
    calls.take(10, at=None)
    Calls(redis_only, limit("10/s", "second"), subject=calls.subject).take(0, at=None)
    (ttl,) = lifetimes(redis_server).values()
    assert ttl > 3_590_000
    assert not calls.take(at=None).allowed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("cost", [1, 100], ids=["taken", "refused"])
def test_a_key_that_lost_its_end_heals(
    algorithm: str, cost: int, redis_server: RedisServer, redis_only: RedisStore
) -> None:
    calls = Calls(redis_only, limit("10/m", algorithm=algorithm))
    calls.take(at=None)
    client = redis_server.client()
    for key in client.scan_iter():
        assert client.persist(key)
    assert set(lifetimes(redis_server).values()) == {-1}
    calls.take(cost, at=None)
    assert all(0 < ttl <= 121_000 for ttl in lifetimes(redis_server).values())


def test_with_a_clock_of_the_callers_no_key_ends_early(
    redis_server: RedisServer, redis_only: RedisStore
) -> None:
    """Frozen time must not depend on how long the test itself takes."""
    Calls(redis_only, limit("10/s")).take(10)
    (ttl,) = lifetimes(redis_server).values()
    assert 600_000 < ttl <= 603_000


@pytest.mark.parametrize("backend", ["django-redis", "django"])
def test_the_timeout_of_the_alias_means_nothing(backend: str, redis_server: RedisServer) -> None:
    """Case 41, with a shorter wait."""
    store = redis_store(redis_server.url, backend, TIMEOUT=1)
    calls = Calls(store, limit("1/d"))
    assert calls.take(at=None).allowed
    time.sleep(1.1)
    refused = calls.take(at=None)
    assert not refused.allowed
    assert refused.wait_us is not None
    assert refused.wait_us > 86_390 * SECOND
    close(store)


def test_a_forgotten_bucket_was_full(redis_server: RedisServer, redis_only: RedisStore) -> None:
    """When its key has ended, nobody could have told the difference."""
    calls = Calls(redis_only, limit("40/s"))
    calls.take(4, at=None)
    (key,) = redis_server.client().scan_iter()
    deadline = time.monotonic() + 5
    while redis_server.client().exists(key):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert calls.peek(at=None).outcomes[0].remaining == 40


def test_versions_end_too(redis_server: RedisServer, redis_only: RedisStore) -> None:
    redis_only.set_versions({"of plans": "a", "of a tenant": "b"}, 60)
    assert redis_only.versions(["of plans", "of a tenant", "of nobody"]) == ("a", "b", "")
    assert all(59_000 < ttl <= 60_000 for ttl in lifetimes(redis_server).values())


@pytest.mark.parametrize("operation", [Operation.TAKE, Operation.PEEK])
def test_a_version_without_an_end_gets_one(
    operation: Operation, redis_server: RedisServer, redis_only: RedisStore
) -> None:
    """From the first caller to whom it is news, as it is to each process once."""
    client = redis_server.client()
    names = [redis_only.make_key(key) for key in ("of plans", "of a tenant", "of nobody")]
    client.mset(dict.fromkeys(names, "planted"))
    versions = (("of plans", "known"), ("of a tenant", "planted"))
    group = Group((Slot(limit("10/m"), "somebody"),), versions)
    answer = redis_only.run(operation, group, [1])
    assert answer.stale == ("planted", "planted")
    left = [client.ttl(name) for name in names]
    assert all(86_000 < seconds <= 86_400 for seconds in left[:2])
    assert left[2] == -1


def test_a_version_with_an_end_keeps_it(redis_server: RedisServer, redis_only: RedisStore) -> None:
    redis_only.set_versions({"of plans": "new"}, 60)
    group = Group((Slot(limit("10/m"), "somebody"),), (("of plans", "old"),))
    assert redis_only.run(Operation.TAKE, group, [1]).stale == ("new",)
    assert 50_000 < redis_server.client().pttl(redis_only.make_key("of plans")) <= 60_000


def test_reset_leaves_nothing(redis_server: RedisServer, redis_only: RedisStore) -> None:
    calls = Calls(redis_only, *(limit("10/m", a, algorithm=a) for a in ALGORITHMS))
    calls.take(7)
    # One of the caller, and one of the log.
    assert len(lifetimes(redis_server)) == 2
    redis_only.reset(calls.group)
    assert not lifetimes(redis_server)
    assert calls.take(10).allowed
