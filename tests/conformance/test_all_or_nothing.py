"""A refused take takes nothing from any bucket, and nothing is lost or counted twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ratelimits.stores.base import Store
from ratelimits.stores.redis import RedisStore
from tests.servers import RedisServer

from .examples import ALGORITHMS, examples
from .stores import NOON, Calls, left, limit


def one_of_each(store: Store) -> Calls:
    """Four limits by four algorithms, of which the tightest is the last."""
    rates = zip(["100/m", "90/m", "80/m", "4/m"], ALGORITHMS, strict=True)
    return Calls(store, *(limit(r, f"{r} {a}", algorithm=a) for r, a in rates))


def stored(server: RedisServer) -> dict[bytes, bytes | None]:
    """Every key with its value, byte for byte."""
    client = server.client()
    keys = list(client.scan_iter())
    assert keys
    return {key: client.dump(key) for key in keys}


def test_refused_limits_cost_the_others_nothing(store: Store) -> None:
    calls = one_of_each(store)
    assert calls.take(3).allowed
    before = left(calls.peek())
    refused = calls.take(2)
    assert [outcome.name for outcome in refused.violated] == ["4/m sliding_counter"]
    assert left(refused) == before == left(calls.peek())
    assert list(before.values()) == [97, 87, 77, 1]


def test_refusals_leave_the_stored_bytes_as_they_are(
    redis_server: RedisServer, redis_only: RedisStore
) -> None:
    calls = one_of_each(redis_only)
    assert calls.take(3).allowed
    before = stored(redis_server)
    assert len(before) == 2, "a log has a key of its own"
    for cost in (2, 5, 81, 10**9):
        assert not calls.take(cost).allowed
        assert stored(redis_server) == before
    assert calls.take(1).allowed
    assert stored(redis_server) != before


def test_peeks_write_nothing(redis_server: RedisServer, redis_only: RedisStore) -> None:
    calls = one_of_each(redis_only)
    calls.peek()
    assert not list(redis_server.client().scan_iter())
    calls.take(3)
    before = stored(redis_server)
    for at in (NOON, NOON + 10**7, NOON - 10**9):
        calls.peek(at=at)
        calls.peek(1000, at=at)
    assert stored(redis_server) == before


def test_a_refusal_with_an_unknown_caller(store: Store) -> None:
    """Also when there was no state before."""
    calls = one_of_each(store)
    assert not calls.take(5).allowed
    assert list(left(calls.peek()).values()) == [100, 90, 80, 4]


@examples(40)
@given(costs=st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=40))
def test_what_was_taken_is_what_was_admitted(
    costs: list[tuple[int, bool]], memory_and_redis: dict[str, Store]
) -> None:
    """Of two limits with nothing to refill them meanwhile, whichever of them refuses."""
    for store in memory_and_redis.values():
        calls = Calls(store, limit("200/d", "a"), limit("9/d", "b", algorithm="sliding_log"))
        other = Calls(store, limit("200/d", "a"), subject=calls.subject)
        admitted = {"a": 0, "b": 0}
        for cost, both in costs:
            if both and calls.take(cost).allowed:
                admitted = {"a": admitted["a"] + cost, "b": admitted["b"] + cost}
            elif not both and other.take(cost).allowed:
                admitted["a"] += cost
        assert left(calls.peek()) == {"a": 200 - admitted["a"], "b": 9 - admitted["b"]}


def test_a_shadow_limit_refuses_nothing_and_takes_what_is_left(store: Store) -> None:
    calls = Calls(store, limit("10/m", "a"), limit("3/m", "b", mode="shadow"))
    decision = calls.take(5)
    assert decision.allowed
    assert [outcome.allowed for outcome in decision.outcomes] == [True, False]
    assert left(decision) == {"a": 5, "b": 0}
    assert not calls.take(6).allowed
