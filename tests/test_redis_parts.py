"""Which limits of a call go to which part of a cluster, and how several answers make one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from redis.crc import key_slot

from ratelimits.algorithms import ALGORITHMS, State
from ratelimits.catalog import Caller, own_subject, plans_key, tenant_key
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Answer, Group, Slot
from ratelimits.stores.redis_parts import (
    ALL,
    EVERYONE,
    SHARDS,
    Part,
    parts_of,
    shard_of,
    shards_of_version,
    stale,
    tag,
    together,
)


def make_key(key: str, shard: int) -> str:
    return f"prefix:1:{tag(shard)}{key}"


def slot(name: str, subject: str, per: str = "tenant", **options: Any) -> Slot:
    return Slot(Limit(name, Rate.parse("10/m"), per=per, **options), subject)


def in_another_shard(subject: str) -> str:
    return next(f"other{i}" for i in range(9) if shard_of(f"other{i}") != shard_of(subject))


def test_callers_spread_over_all_shards() -> None:
    counts = Counter(shard_of(own_subject(Caller(f"user:{i}"))) for i in range(SHARDS * 100))
    assert set(counts) == set(range(SHARDS))
    assert min(counts.values()) > 50
    assert max(counts.values()) < 170


def test_shards_spread_over_the_masters_of_a_cluster() -> None:
    slots = [key_slot(make_key("key", shard).encode()) for shard in ALL]
    assert len(set(slots)) == len(ALL)
    for masters in (3, 6, 12):
        held = Counter(at * masters // 16384 for at in slots)
        assert len(held) == masters
        assert max(held.values()) <= 2 * len(ALL) / masters


def test_a_tenants_version_is_beside_its_buckets() -> None:
    for key in ("acme", "user:7", "a:b:c", "Größe"):
        assert shards_of_version(tenant_key(key)) == (shard_of(own_subject(Caller(key))),)
    assert shards_of_version(plans_key()) == ALL


def test_all_of_one_caller_is_one_part() -> None:
    """With a key of its own, a log's, and both versions: all in one hash slot."""
    subject = own_subject(Caller("acme"))
    group = Group(
        (slot("a", subject), slot("b", subject), slot("c", subject, algorithm="sliding_log")),
        ((plans_key(), "p"), (tenant_key("acme"), "t")),
    )
    (part,) = parts_of(group, make_key)
    assert len(part.packed.keys) == 4
    assert len({key_slot(key.encode()) for key in part.packed.keys}) == 1
    assert part.packed.versions == ("p", "t")


def test_everyone_is_asked_last_and_the_tenant_first() -> None:
    subject = own_subject(Caller("acme"))
    address = in_another_shard(subject)
    slots = (slot("all", "all", per="everyone"), slot("each", address), slot("own", subject))
    group = Group(slots, ((plans_key(), "p"), (tenant_key("acme"), "t")))
    parts = parts_of(group, make_key)
    assert [part.shard for part in parts] == [shard_of(subject), shard_of(address), EVERYONE]
    assert [part.places for part in parts] == [(2,), (1,), (0,)]
    assert [len(part.versions) for part in parts] == [2, 0, 0]


def test_versions_are_asked_for_even_where_nothing_is_counted() -> None:
    tenant = (tenant_key("acme"), "t")
    (part,) = parts_of(Group((), ((plans_key(), "p"), tenant)), make_key)
    assert (part.shard, part.places, part.packed.versions) == (
        shard_of(own_subject(Caller("acme"))), (), ("p", "t")
    )  # fmt: skip
    (part,) = parts_of(Group((), ((plans_key(), "p"),)), make_key)
    assert part.packed.versions == ("p",)
    first, last = parts_of(
        Group((slot("all", "all", per="everyone"),), ((plans_key(), "p"), tenant)), make_key
    )
    assert (first.packed.versions, last.packed.versions) == (("p", "t"), ())


def test_two_tenants_versions_are_asked_for_where_each_is() -> None:
    other = next(
        f"t{i}"
        for i in range(9)
        if shards_of_version(tenant_key(f"t{i}")) != shards_of_version(tenant_key("acme"))
    )
    keys = (plans_key(), tenant_key("acme"), tenant_key(other))
    group = Group((), tuple((key, "old") for key in keys))
    first, second = parts_of(group, make_key)
    assert (first.versions, second.versions) == (keys[:2], keys[2:])
    answer = Answer(0, False, (), (), ("new",))
    assert stale(group, second, answer).stale == ("old", "old", "new")


def parts(*slots: Slot) -> tuple[Group, tuple[Part, ...]]:
    group = Group(slots)
    found = parts_of(group, make_key)
    assert len(found) == len(slots)
    return group, found


@pytest.mark.parametrize("ahead", [-3_000_000, -1, 0, 1, 3_000_000])
@pytest.mark.parametrize("algorithm", ["token_bucket", "sliding_log"])
def test_each_wait_is_by_the_clock_that_counted_it(algorithm: str, ahead: int) -> None:
    """Two masters of one cluster may tell times that differ by seconds."""
    first, second = slot("own", "a"), slot("each", in_another_shard("a"), algorithm=algorithm)
    group, asked = parts(first, second)
    limit, now = second.limit, 1_782_907_200_000_000
    state = State(10, now + ahead + 9, now + ahead + 5, now + ahead)
    if algorithm == "token_bucket":
        state = State(9, 1, limit.terms.window // 2, now + ahead)
    does = ALGORITHMS[algorithm]
    expected = does.read(state, limit.terms, 3, now + ahead)
    used = State(1, 0, 6_000_000, now)
    answers = [Answer(now, True, (used,), (True,)), Answer(now + ahead, False, (state,), (False,))]
    answer = together(group, asked, answers)
    assert answer.states[1] is not None
    assert does.read(answer.states[1], limit.terms, 3, answer.now) == expected
    assert (answer.allowed, answer.fitted) == (False, (True, False))


@pytest.mark.parametrize("ahead", [-3_000_000, 3_000_000])
@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_counter"])
def test_no_wait_for_a_windows_end_is_too_short(algorithm: str, ahead: int) -> None:
    first, second = slot("own", "a"), slot("each", in_another_shard("a"), algorithm=algorithm)
    group, asked = parts(first, second)
    limit, now = second.limit, 1_782_907_220_000_000
    state = State(10, 0, limit.terms.window, 1_782_907_200_000_000)
    does = ALGORITHMS[algorithm]
    right = does.read(state, limit.terms, 3, now + ahead).wait
    used = State(1, 0, 6_000_000, now)
    answers = [Answer(now, True, (used,), (True,)), Answer(now + ahead, False, (state,), (False,))]
    answer = together(group, asked, answers)
    told = does.read(state, limit.terms, 3, answer.now).wait
    assert right is not None
    assert told is not None
    assert right <= told <= right + abs(ahead)
