"""What is stored says its version, and what is not understood is as if it were not there."""

from __future__ import annotations

import pytest

from ratelimits.stores.redis import RedisStore
from tests.servers import RedisServer

from .stores import Calls, limit


def only_key(server: RedisServer) -> bytes:
    (key,) = server.client().scan_iter()
    assert isinstance(key, bytes)
    return key


def test_the_first_byte_tells_the_version(
    redis_server: RedisServer, redis_only: RedisStore
) -> None:
    """The highest bit of each limit's 28 bytes."""
    Calls(redis_only, limit("10/m", "a"), limit("10/h", "b", algorithm="fixed_window")).take()
    value = redis_server.client().get(only_key(redis_server))
    assert isinstance(value, bytes)
    assert [byte >> 7 for byte in value[::28]] == [1, 1]
    assert len(value) == 56


@pytest.mark.parametrize("first", [b"\x00", b"\x01", b"\x7f", b"1"])
def test_another_version_is_as_good_as_nothing(
    first: bytes, redis_server: RedisServer, redis_only: RedisStore
) -> None:
    calls = Calls(redis_only, limit("10/m"))
    calls.take(10)
    client, key = redis_server.client(), only_key(redis_server)
    ours = client.get(key)
    assert isinstance(ours, bytes)
    client.set(key, first + ours[1:])
    assert calls.take(10).allowed
    assert client.get(key) == ours
    assert client.pttl(key) > 0


@pytest.mark.parametrize("value", [b"", b"\x80", b"\x80half an entry", b"17"])
def test_what_is_cut_short_is_as_good_as_nothing(
    value: bytes, redis_server: RedisServer, redis_only: RedisStore
) -> None:
    calls = Calls(redis_only, limit("10/m"))
    redis_server.client().set(redis_only.make_key(calls.subject), value)
    assert calls.take(10).allowed
    assert not calls.take().allowed


def test_limits_that_went_and_came_keep_what_was_used(
    redis_server: RedisServer, redis_only: RedisStore
) -> None:
    """Each is found by its name, wherever it stands in the value."""
    calls = Calls(redis_only, limit("10/m", "a"), limit("20/m", "b"))
    calls.take(4)
    Calls(redis_only, limit("30/m", "c"), limit("20/m", "b"), subject=calls.subject).take(1)
    all_three = Calls(
        redis_only,
        *(limit(f"{n}0/m", name) for n, name in enumerate("abc", 1)),
        subject=calls.subject,
    )
    assert [outcome.remaining for outcome in all_three.peek().outcomes] == [6, 15, 29]


def test_a_changed_algorithm_starts_fresh(redis_only: RedisStore) -> None:
    calls = Calls(redis_only, limit("10/m"))
    calls.take(10)
    for algorithm in ("fixed_window", "sliding_counter", "sliding_log"):
        calls.edit(limit("10/m", algorithm=algorithm))
        assert calls.take(10).allowed
        assert not calls.take().allowed


def test_a_changed_window_starts_fresh_but_not_a_buckets(redis_only: RedisStore) -> None:
    for algorithm, passes in [
        ("fixed_window", True),
        ("sliding_counter", True),
        ("sliding_log", False),
        ("token_bucket", False),
    ]:
        calls = Calls(redis_only, limit("10/m", algorithm=algorithm))
        calls.take(10)
        calls.edit(limit("10/h", algorithm=algorithm))
        assert calls.take().allowed is passes, algorithm
