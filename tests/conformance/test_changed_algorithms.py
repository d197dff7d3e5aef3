"""A changed algorithm starts fresh, each time; and so does what was reset."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest

from ratelimits.stores.base import Group, Store
from ratelimits.stores.redis import RedisStore
from tests.servers import RedisServer

from .examples import ALGORITHMS
from .stores import NOON, Calls, left, limit, new_subject


@pytest.mark.parametrize("change", list(permutations(ALGORITHMS, 2)), ids="-".join)
def test_there_and_back(change: Sequence[str], store: Store) -> None:
    calls = Calls(store)
    for algorithm in (*change, change[0]):
        calls.edit(limit("3/d", algorithm=algorithm))
        assert left(calls.take(2)) == {"limit": 1}
        assert not calls.take(2).allowed
        assert left(calls.take(1)) == {"limit": 0}


def test_a_reset_frees_logs_that_it_does_not_know(real_store: Store) -> None:
    """Such as those of limits in code: the subject is all that a reset needs."""
    calls = Calls(real_store, limit("1/d", "log", algorithm="sliding_log"), limit("1/d", "bucket"))
    assert calls.take().allowed
    assert not calls.take().allowed
    real_store.reset(Group(()), (calls.subject,))
    assert calls.take().allowed
    assert not calls.take().allowed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_keys_of_another_type_heal(
    algorithm: str, redis_server: RedisServer, redis_only: RedisStore
) -> None:
    """Whoever planted them: the next take counts, and its keys end by themselves."""
    client = redis_server.client()
    calls = Calls(redis_only, limit("2/d", algorithm=algorithm))
    calls.take(at=None)
    for key in list(client.scan_iter()):
        client.delete(key)
        client.hset(key, "field", "value")
    assert left(calls.peek(at=None)) == {"limit": 2}
    assert left(calls.take(at=None)) == {"limit": 1}
    assert left(calls.take(at=None)) == {"limit": 0}
    assert all(client.pttl(key) > 0 for key in client.scan_iter())


def test_a_log_that_is_none(redis_server: RedisServer, redis_only: RedisStore) -> None:
    client = redis_server.client()
    calls = Calls(redis_only, limit("2/d", algorithm="sliding_log"), subject=new_subject())
    calls.take(at=NOON)
    (log,) = [key for key in client.scan_iter() if client.type(key) == b"list"]
    client.delete(log)
    client.rpush(log, "a list", "of somebody")
    assert left(calls.take(at=NOON)) == {"limit": 1}
    assert left(calls.take(at=NOON)) == {"limit": 0}
