"""A cluster of which a part is away or on the move: the rest counts on, nothing counts twice."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from ratelimits.algorithms import Operation
from ratelimits.catalog import Caller, own_subject
from ratelimits.exceptions import PartUnavailable, StoreBusy, StoreUnavailable
from ratelimits.limiter import peek, take
from ratelimits.models import ServiceLimit
from ratelimits.stores import breaker as breakers
from ratelimits.stores import get_store
from ratelimits.stores.base import Group, Slot
from ratelimits.stores.redis import RedisStore
from ratelimits.stores.redis_nodes import Address
from ratelimits.stores.redis_parts import EVERYONE, shard_of
from tests.clusters import ClusterNode, RedisCluster, is_copy
from tests.conformance.stores import Calls, close, limit, redis_store
from tests.doors import make_plan
from tests.fresh import the_redis_store
from tests.servers import RedisServer
from tests.settings import redis_caches
from tests.waiting import until_nobody_probes, wait_until

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _probing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakers, "PROBE_EVERY", 0.05)


@pytest.fixture
def on_cluster(redis_cluster: RedisCluster, settings: Any) -> Iterator[RedisCluster]:
    settings.CACHES = redis_caches(redis_cluster.urls)
    settings.RATELIMITS = {"STORE_TIMEOUT": 0.5, "LOCAL_REFUSALS": 0}
    until_nobody_probes()
    yield redis_cluster
    the_redis_store().close()


@pytest.fixture
def store(redis_cluster: RedisCluster) -> Iterator[RedisStore]:
    store = redis_store(redis_cluster.urls)
    yield store
    close(store)


def holder(store: RedisStore, shard: int) -> Address:
    assert store.cluster is not None
    return store.cluster.nodes._masters[store.cluster.slots[shard]]


def subject_on(store: RedisStore, node: ClusterNode, but: int | None = None) -> str:
    """Whose shard a node holds."""
    names = (f"subject{number}" for number in range(1000))
    return next(
        name
        for name in names
        if holder(store, shard_of(name)).port == node.port and shard_of(name) != but
    )


def tenant_on(node: ClusterNode) -> str:
    store = the_redis_store()
    keys = (f"tenant{number}" for number in range(1000))
    return next(
        key for key in keys if holder(store, shard_of(own_subject(Caller(key)))).port == node.port
    )


def used(decision: Any) -> int:
    (outcome,) = decision.outcomes
    return int(outcome.limit.capacity - outcome.remaining)


@pytest.mark.parametrize("end", [RedisServer.kill, RedisServer.stop])
def test_only_callers_of_a_master_that_is_away_are_counted_locally(
    end: Callable[[RedisServer], None],
    on_cluster: RedisCluster,
    caplog: pytest.LogCaptureFixture,
) -> None:
    make_plan("api 10000/w")
    take("anyone")
    away = on_cluster.nodes[0]
    lost, *kept = [tenant_on(node) for node in on_cluster.nodes]
    assert [used(take(key)) for key in (lost, *kept)] == [1, 1, 1]
    end(away)
    first, *others = [used(take(lost)) for _ in range(5)]
    assert others == list(range(others[0], others[0] + 4)), "from where it was"
    assert first == 2
    assert [used(take(key)) for key in kept] == [2, 2]
    guarded: Any = get_store()
    assert not guarded.breaker.is_open, "the store as a whole is there"

    away.cont() if away.process is not None else away.start()
    on_cluster.wait_until_ok()
    nodes = guarded.store.cluster.nodes
    wait_until(lambda: not nodes._node(Address("127.0.0.1", away.port)).breaker.is_open, "back")
    # Killed, it has forgotten the first. Stopped, it may still do what nobody waits for any more.
    counted = {5} if end is RedisServer.kill else {5, 6}
    wait_until(lambda: used(peek(lost)) in counted, "what was counted meanwhile is charged")
    part = f"The store of the rate limits, its part at 127.0.0.1:{away.port}, is"
    said = [line.split(part)[1][:5] for line in caplog.messages if part in line]
    assert said == [" away", " back"], "one line each"


def test_nothing_is_taken_if_one_of_the_parts_is_away(
    redis_cluster: RedisCluster, store: RedisStore
) -> None:
    """Neither by the call that finds out, which gives back, nor by those that know."""
    hasty = RedisStore(store.backend, 0.5)
    hasty.versions(["any"])
    first, second, _ = redis_cluster.nodes
    one, other = subject_on(hasty, first), subject_on(hasty, second)
    group = Group((Slot(limit("9/d"), one), Slot(limit("9/d", "two"), other)))
    assert hasty.run(Operation.TAKE, group, [1, 1]).allowed
    second.stop()
    for _ in range(3):
        with pytest.raises(PartUnavailable, match=str(second.port)):
            hasty.run(Operation.TAKE, group, [1, 1])
    assert used(Calls(store, group.slots[0].limit, subject=one).peek(at=None)) == 1
    close(hasty)


def test_everyones_limit_may_be_away_too(on_cluster: RedisCluster) -> None:
    """Its part is a part of every call: all go without the store, and none gets a 500."""
    make_plan("api 10000/w")
    ServiceLimit.objects.create(name="all", rate="10000/w")
    take("anyone")
    port = holder(the_redis_store(), EVERYONE).port
    on_cluster.node_at(port).stop()
    for key in ("acme", "bakery", "clinic"):
        assert take(key).allowed


def moved(cluster: RedisCluster, slot: int, target: ClusterNode) -> None:
    # First to the new holder.
    for node in sorted(cluster.nodes, key=lambda node: node is not target):
        node.told("SETSLOT", slot, "NODE", target.id)


def migrate(slot: int, source: ClusterNode, target: ClusterNode) -> None:
    keys = source.told("GETKEYSINSLOT", slot, 100)
    source.client().execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)


def test_takes_follow_a_slot_from_master_to_master(
    redis_cluster: RedisCluster, store: RedisStore
) -> None:
    """Not one is lost or counted twice, while it moves (ASK) and after it has moved (MOVED)."""
    store.versions(["any"])
    assert store.cluster is not None
    source, target, _ = redis_cluster.nodes
    calls = Calls(store, limit("99/d"), subject=subject_on(store, source))
    slot = store.cluster.slots[shard_of(calls.subject)]
    assert used(calls.take()) == 1
    target.told("SETSLOT", slot, "IMPORTING", source.id)
    source.told("SETSLOT", slot, "MIGRATING", target.id)
    try:
        assert used(calls.take()) == 2, "still where its key is"
        migrate(slot, source, target)
        assert used(calls.take()) == 3, "asked of the one that gets it"
        assert holder(store, shard_of(calls.subject)).port == source.port, "not for good yet"
        moved(redis_cluster, slot, target)
        assert [used(calls.take()) for _ in range(2)] == [4, 5]
        assert holder(store, shard_of(calls.subject)).port == target.port, "this was learnt"
    finally:
        target.flush()
        # As one who imports it, so that no earlier word of the other is believed any more.
        with suppress(redis.ResponseError):
            source.told("SETSLOT", slot, "IMPORTING", target.id)
        moved(redis_cluster, slot, source)


def test_a_slot_half_moved_is_no_fault_of_its_master(
    redis_cluster: RedisCluster, store: RedisStore
) -> None:
    """TRYAGAIN: one of two keys is here. Others on the same master count on."""
    store.versions(["any"])
    assert store.cluster is not None
    source, target, _ = redis_cluster.nodes
    calls = Calls(
        store, limit("99/d"), limit("99/d", "log", algorithm="sliding_log"),
        subject=subject_on(store, source),
    )  # fmt: skip
    plain = Calls(store, limit("99/d"), subject=calls.subject)
    plain.take()
    slot = store.cluster.slots[shard_of(calls.subject)]
    target.told("SETSLOT", slot, "IMPORTING", source.id)
    source.told("SETSLOT", slot, "MIGRATING", target.id)
    try:
        with pytest.raises(StoreBusy) as caught:
            calls.take()
        assert not isinstance(caught.value, PartUnavailable)
        other = subject_on(store, source, but=shard_of(calls.subject))
        assert Calls(store, limit("9/d"), subject=other).take().allowed
    finally:
        source.told("SETSLOT", slot, "STABLE")
        target.told("SETSLOT", slot, "STABLE")
    assert calls.take().allowed


def test_a_node_that_lost_its_scripts_is_told_the_script(
    redis_cluster: RedisCluster, store: RedisStore
) -> None:
    subjects = [f"subject{number}" for number in range(20)]
    for number in range(3):
        for subject in subjects:
            assert used(Calls(store, limit("9/d"), subject=subject).take()) == number + 1
        redis_cluster.nodes[number].client().script_flush()


def test_a_wrong_map_is_put_right_by_whoever_knows(
    redis_cluster: RedisCluster, store: RedisStore
) -> None:
    """As of a process that slept through a rearrangement of the whole cluster."""
    store.versions(["any"])
    assert store.cluster is not None
    nodes = store.cluster.nodes
    right = dict(nodes._masters)
    wrong = [*redis_cluster.nodes[1:], redis_cluster.nodes[0]]
    instead = {a.port: b.port for a, b in zip(redis_cluster.nodes, wrong, strict=True)}
    nodes._masters = {slot: at._replace(port=instead[at.port]) for slot, at in right.items()}
    for number in range(30):
        assert used(Calls(store, limit("9/d"), subject=f"subject{number}").take()) == 1
    store.set_versions({"plans": "v"}, 60)
    assert nodes._masters == right
    nodes._masters = {}
    assert used(Calls(store, limit("9/d"), subject="subject0").take()) == 2
    nodes.refresh()
    assert nodes._masters == right


def test_slots_that_nobody_serves_are_a_fault(
    redis_cluster: RedisCluster, store: RedisStore
) -> None:
    store.versions(["any"])
    assert store.cluster is not None
    source = redis_cluster.nodes[0]
    subject = subject_on(store, source)
    slot = store.cluster.slots[shard_of(subject)]
    calls = Calls(store, limit("9/d"), subject=subject)
    source.told("DELSLOTS", slot)
    try:
        with pytest.raises(StoreUnavailable, match="not served"):
            calls.take()
        elsewhere = subject_on(store, source, but=shard_of(subject))
        assert Calls(store, limit("9/d"), subject=elsewhere).take().allowed
    finally:
        source.told("ADDSLOTS", slot)
    redis_cluster.wait_until_ok()
    assert calls.take().allowed


@pytest.mark.long
def test_a_replica_takes_over_with_what_it_has(tmp_path: Path, settings: Any) -> None:
    """What replication had not delivered is lost; meanwhile there is no 500 and no refusal."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis is not installed")
    cluster = RedisCluster(binary, tmp_path, masters=1, node_timeout=2_000)
    settings.CACHES = redis_caches(cluster.url)
    settings.RATELIMITS = {"STORE_TIMEOUT": 0.5, "LOCAL_REFUSALS": 0}
    make_plan("api 10000/w")
    replica = cluster.add_replica(binary, tmp_path / "replica")
    try:
        assert [used(take("acme")) for _ in range(3)] == [1, 2, 3]
        wait_until(partial(is_copy, replica, cluster.nodes[0]), "the replica has it all")
        cluster.kill()
        assert all(take("acme").allowed for _ in range(5))
        replica.told("FAILOVER", "TAKEOVER")
        store: Any = get_store()
        new = Address("127.0.0.1", replica.port)
        wait_until(lambda: new in store.store.cluster.nodes._masters.values(), "the map is read")
        before = used(take("acme"))
        assert before > 3, "what the replica had is kept"
        assert [used(take("acme")) for _ in range(2)] == [before + 1, before + 2]
        store.store.close()
    finally:
        cluster.kill()
        replica.kill()
