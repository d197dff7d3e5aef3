"""Limits counted on a cluster of three masters, through the limiter."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.test import RequestFactory
from redis.crc import key_slot

from ratelimits import edits
from ratelimits.algorithms import Operation
from ratelimits.catalog import Caller, Catalog, own_subject, plans_key, tenant_key
from ratelimits.limiter import charge, peek, refund, reset, take
from ratelimits.models import PlanLimit, ServiceLimit
from ratelimits.stores.base import Group, Slot
from ratelimits.stores.redis_parts import SHARDS, shard_of
from tests.clusters import RedisCluster
from tests.conformance import test_vectors
from tests.conformance.stores import NOON, Calls, close, limit, redis_store
from tests.conformance.test_vectors import histories, play
from tests.doors import make_plan, own_limit
from tests.fresh import PATIENT, the_redis_store
from tests.settings import redis_caches

pytestmark = pytest.mark.django_db


@pytest.fixture
def on_cluster(cluster_like: RedisCluster, settings: Any) -> Any:
    """The limiter counts on a cluster, of which the alias names one node."""
    settings.CACHES = redis_caches(cluster_like.url)
    settings.RATELIMITS = PATIENT
    yield cluster_like
    the_redis_store().close()


def remaining(decision: Any) -> dict[str, int]:
    return {outcome.name: outcome.remaining for outcome in decision.outcomes}


class Sent:
    """How many scripts the nodes ran since."""

    def __init__(self, cluster: RedisCluster) -> None:
        self.cluster = cluster
        self.before = self.now()

    def now(self) -> int:
        return sum(
            stats.get(f"cmdstat_{name}", {}).get("calls", 0)
            for node in self.cluster.nodes
            for stats in [node.client().info("commandstats")]
            for name in ("eval", "evalsha")
        )

    @property
    def count(self) -> int:
        return self.now() - self.before


def test_callers_are_spread_and_each_is_in_one_slot(on_cluster: RedisCluster) -> None:
    plan = make_plan("bucket 10/d", "second 5/m")
    plan.limits.create(name="log", rate="9/d", algorithm="sliding_log")
    for number in range(30):
        assert take(f"tenant-{number}").allowed
    keys = on_cluster.names()
    assert len(keys) == 60, "a key of its own for each, and one for its log"
    slots = Counter(key_slot(key) for key in keys)
    assert all(count % 2 == 0 for count in slots.values())
    assert all(len(list(node.client().scan_iter())) > 4 for node in on_cluster.nodes)
    assert all(
        0 < node.client().pttl(key) <= 86_401_000
        for node in on_cluster.nodes
        for key in node.client().scan_iter()
    )


def test_all_of_a_caller_is_one_command_and_everyone_one_more(on_cluster: RedisCluster) -> None:
    make_plan("api 10/d", "second 5/m")
    take("acme")
    sent = Sent(on_cluster)
    assert take("acme").allowed
    assert sent.count == 1
    ServiceLimit.objects.create(name="all", rate="100/d")
    take("acme")
    sent = Sent(on_cluster)
    assert take("acme").allowed
    assert sent.count == 2


def test_everyone_refuses_and_nothing_is_taken(on_cluster: RedisCluster) -> None:
    make_plan("api 10/d")
    ServiceLimit.objects.create(name="all", rate="2/d")
    assert [take(key).status for key in ("acme", "bakery", "clinic", "acme")] == [
        200,
        200,
        503,
        503,
    ]
    refused = take("acme")
    assert remaining(refused) == {"api": 9, "all": 0}
    assert [outcome.name for outcome in refused.violated] == ["all"]
    assert remaining(peek("clinic")) == {"api": 10, "all": 0}
    ServiceLimit.objects.all().delete()
    assert remaining(take("acme")) == {"api": 8}


def test_a_caller_who_is_refused_takes_nothing_from_everyone(on_cluster: RedisCluster) -> None:
    make_plan("api 2/d")
    ServiceLimit.objects.create(name="all", rate="100/d")
    ServiceLimit.objects.create(name="each", rate="50/d", per="address")
    request = RequestFactory().get("/", REMOTE_ADDR="198.51.100.7")
    assert [take("acme").status for _ in range(4)] == [200, 200, 429, 429]
    assert remaining(take("acme")) == {"api": 0, "all": 98}
    assert remaining(take(request)) == {"api": 1, "all": 97, "each": 49}


def test_the_other_operations(on_cluster: RedisCluster) -> None:
    make_plan("api 10/d")
    ServiceLimit.objects.create(name="all", rate="100/d")
    assert remaining(charge("acme", cost=4)) == {"api": 6, "all": 96}
    assert remaining(refund("acme", cost=1)) == {"api": 7, "all": 97}
    assert remaining(charge("acme", cost=50)) == {"api": 0, "all": 47}
    reset("acme")
    assert remaining(peek("acme")) == {"api": 10, "all": 47}


@pytest.mark.django_db(transaction=True)
def test_an_edit_elsewhere_acts_on_the_next_take_of_every_shard(
    on_cluster: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_plan("api 10/d")
    tenants = [f"tenant-{number}" for number in range(40)]
    assert len({shard_of(own_subject(Caller(key))) for key in tenants}) > SHARDS // 4
    assert all(remaining(take(key)) == {"api": 9} for key in tenants)
    with monkeypatch.context() as patch:
        # As another process, which has not read any of them.
        patch.setattr(edits, "shared", Catalog())
        PlanLimit.objects.update(rate="20/d")
        own_limit("tenant-7", "5/d")
    known = {key: take(key) for key in reversed(tenants)}
    assert remaining(known.pop("tenant-7")) == {"api": 3}
    assert all(remaining(decision) == {"api": 18} for decision in known.values())


def test_who_knows_an_older_version_is_told_the_new_one(on_cluster: RedisCluster) -> None:
    store, subject = the_redis_store(), own_subject(Caller("acme"))
    slots = (Slot(limit("9/d"), subject), Slot(limit("9/d", "all", per="everyone"), "all"))
    group = Group(slots, ((plans_key(), "p1"), (tenant_key("acme"), "t1")))
    assert store.run(Operation.TAKE, group, [1, 1]).allowed
    store.set_versions({tenant_key("acme"): "t2"}, 60)
    assert store.run(Operation.TAKE, group, [1, 1]).stale == ("p1", "t2")
    store.set_versions({plans_key(): "p2"}, 60)
    assert store.run(Operation.TAKE, group, [1, 1]).stale == ("p2", "t2")
    assert store.versions([plans_key(), tenant_key("acme"), tenant_key("b")]) == ("p2", "t2", "")
    newer = Group(slots, ((plans_key(), "p2"), (tenant_key("acme"), "t2")))
    answer = store.run(Operation.TAKE, newer, [1, 1])
    assert [state and state.used for state in answer.states] == [1, 1], "the stale took nothing"


class Scattered(Calls):
    """Each limit is counted in another shard."""

    @property
    def group(self) -> Group:
        return Group(
            tuple(
                Slot(limit, f"{self.subject}.{number}")
                for number, limit in enumerate(self.limits.values())
            )
        )


def goes_forward(history: Any) -> bool:
    times = [step["at_us"] for step in history["steps"]]
    return times == sorted(times)


def test_histories_over_several_shards(
    redis_cluster: RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All or nothing, and with the same answers, also where one script can't do it.

    But for clocks that step back: a limit that is not asked since another one refused has not
    heard of the time before the step.
    """
    store = redis_store(redis_cluster.urls)
    monkeypatch.setattr(test_vectors, "Calls", Scattered)
    several = [h for h in histories() if len(h["limits"]) > 1 and goes_forward(h)]
    assert sum(play(history, store) for history in several) > 600
    close(store)


def test_a_refusal_by_one_shard_holds_in_the_others_too(redis_cluster: RedisCluster) -> None:
    """A lowered burst counts from the first refusal on, whoever else refuses then."""
    store = redis_store(redis_cluster.url)
    calls = Scattered(store, limit("1/s", "first"), limit("1/s", "second", burst=10))
    calls.take()
    calls.charge(10)
    calls.edit(limit("1/s", "second", burst=4))
    refused = calls.take()
    assert [outcome.name for outcome in refused.violated] == ["first", "second"]
    assert refused.wait_us is not None
    assert not calls.peek(at=NOON + refused.wait_us - 1).allowed
    assert calls.take(at=NOON + refused.wait_us).allowed
    close(store)


def test_a_limit_in_shadow_beside_one_that_refuses(redis_cluster: RedisCluster) -> None:
    """It is told of as it was asked, and is given back nothing that it may not have had."""
    store = redis_store(redis_cluster.url)
    shadow = limit("2/m", "log", algorithm="sliding_log", mode="shadow")
    calls = Scattered(store, shadow, limit("3/d", "all"))
    assert [calls.take().allowed for _ in range(4)] == [True, True, True, False]
    log, everyone = calls.take().outcomes
    assert (log.allowed, log.remaining, log.wait_us) == (False, 0, 60_000_000)
    assert (everyone.allowed, everyone.remaining) == (False, 0)
    assert remaining(calls.peek()) == {"log": 0, "all": 0}
    close(store)
