"""Real servers stop and go on: nothing that passed meanwhile is lost, and nothing counts twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ratelimits.algorithms import Operation
from ratelimits.stores import breaker, get_store
from ratelimits.stores.base import Group, Store
from ratelimits.stores.guarded import GuardedStore
from tests.clusters import RedisCluster
from tests.failing import is_settled
from tests.processes import run_processes
from tests.servers import RedisServer, Server
from tests.settings import redis_caches
from tests.waiting import wait_until

from .shared import slots
from .stores import close, memcached_store, postgresql_store, redis_store

TAKE, PEEK = Operation.TAKE, Operation.PEEK
# Not so short that a busy machine stops a server by itself.
TIMEOUT = 0.5


@pytest.fixture(params=["redis", "memcached", "postgresql"])
def stoppable(
    request: pytest.FixtureRequest, start_server: Any, really_connecting: Any, settings: Any
) -> Iterator[tuple[Server, Store]]:
    settings.RATELIMITS = {"WORKERS": 1, "LOCAL_REFUSALS": 0}
    server = start_server(request.param)
    server.recover()
    with really_connecting():
        store: Any
        if request.param == "redis":
            store = redis_store(server.url)
            store.timeout = TIMEOUT
        elif request.param == "memcached":
            store = memcached_store(server.address, TIMEOUT)
        else:
            store = postgresql_store(server, TIMEOUT)
        yield server, store
        server.recover()
        close(store)


def group(subject: str, *algorithms: str) -> Group:
    return Group(slots(*((subject, "100/30d", name, name, "tenant") for name in algorithms)))


ALL = ("token_bucket", "fixed_window", "sliding_log", "sliding_counter")


def used(store: Store, asked: Group) -> list[int]:
    """Of each limit, in whole units."""
    answer = store.run(PEEK, asked, [0] * len(asked.slots))
    return [state.used + (state.part > 0) for state in answer.states if state is not None]


def test_as_if_it_had_counted_all_along(
    stoppable: tuple[Server, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, store = stoppable
    monkeypatch.setattr(breaker, "PROBE_EVERY", 0.2)
    guarded = GuardedStore(store)
    asked = [group(f"{time.time_ns()} {n}", *ALL[: n + 1]) for n in range(4)]
    for each in asked:
        assert guarded.run(TAKE, each, [3] * len(each.slots)).allowed
    server.stop()
    # The first one waits for the server, which takes it when it goes on, or never gets it.
    in_doubt = guarded.run(TAKE, asked[0], [1])
    assert in_doubt.allowed
    assert guarded.breaker.is_open
    for each in asked:
        costs = [5] * len(each.slots)
        assert [guarded.run(TAKE, each, costs).allowed for _ in range(20)] == [True] * 19 + [False]
        assert guarded.run(TAKE, each, [1] * len(each.slots)).allowed
    server.cont()
    wait_until(lambda: is_settled(guarded))
    assert [used(store, each) for each in asked[1:]] == [
        [3 + 96] * 2,
        [3 + 96] * 3,
        [3 + 96, 3 + 96, 3 + 96, 3 + 96],
    ]
    assert used(store, asked[0])[0] in (99, 100)


def test_redis_is_charged_when_it_is_back(redis_server: RedisServer, settings: Any) -> None:
    settings.RATELIMITS = {"WORKERS": 1, "STORE_TIMEOUT": TIMEOUT}
    settings.CACHES = redis_caches(redis_server.url)
    guarded: Any = get_store()
    callers = [group(f"caller {n}", "token_bucket") for n in range(200)]
    for each in callers:
        guarded.run(TAKE, each, [1])
    redis_server.stop()
    for each in callers:
        assert guarded.run(TAKE, each, [7]).allowed
    redis_server.cont()
    wait_until(lambda: is_settled(guarded))
    assert {used(guarded.store, each)[0] for each in callers[1:]} == {8}


def test_a_node_of_a_cluster(
    redis_cluster: RedisCluster, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its callers are counted here meanwhile, and those of the others there."""
    settings.RATELIMITS = {"WORKERS": 1, "LOCAL_REFUSALS": 0}
    monkeypatch.setattr(breaker, "PROBE_EVERY", 0.2)
    store = redis_store(redis_cluster.url)
    store.timeout = TIMEOUT
    guarded, node = GuardedStore(store), redis_cluster.nodes[2]
    callers = [group(f"caller {n}", "token_bucket") for n in range(24)]
    for each in callers:
        guarded.run(TAKE, each, [1])
    node.stop()
    answers = [guarded.run(TAKE, each, [5]) for _ in range(2) for each in callers]
    assert all(answer.allowed for answer in answers)
    assert not guarded.breaker.is_open
    assert 0 < len(guarded._local().subjects()) < 24
    node.cont()
    wait_until(lambda: is_settled(guarded))
    counts = [used(store, each)[0] for each in callers]
    # The first call that the node did not answer may have reached it or not.
    assert sorted(counts)[1:] == [11] * 23
    assert min(counts) in (6, 11)
    close(store)


def go_on_by_itself(index: int, folder: str, tries: int) -> int:
    """Count with the others, then without the store, until it is charged. How many passed."""
    guarded, asked = get_store(), group("everyone", "token_bucket")
    assert isinstance(guarded, GuardedStore)
    said = Path(folder)
    while guarded.processes.number < 4:
        # Not as seldom as takes would see to it.
        guarded.processes.count()
        time.sleep(0.02)
    guarded.run(PEEK, asked, [0])
    (said / f"ready {index}").touch()
    wait_until((said / "stopped").exists)
    # This one may be done by the store, and counts for it here.
    guarded.run(TAKE, group("somebody else", "token_bucket"), [1])
    passed = sum(guarded.run(TAKE, asked, [1]).allowed for _ in range(tries))
    (said / f"done {index}").touch()
    wait_until(lambda: is_settled(guarded), seconds=60)
    return passed


def stop_for_a_while(server: Server, folder: Path) -> None:
    """Once all are ready, until all are done."""

    def all_say(what: str) -> Callable[[], bool]:
        return lambda: len(list(folder.glob(f"{what} *"))) == 4

    wait_until(all_say("ready"), seconds=60)
    server.stop()
    (folder / "stopped").touch()
    wait_until(all_say("done"), seconds=60)
    server.cont()


@pytest.mark.django_db(transaction=True)
def test_processes_share_what_is_left(redis_server: RedisServer, tmp_path: Path) -> None:
    """Four count each other. Of 100, 20 of which are used, each lets 20 pass."""
    store, asked = redis_store(redis_server.url), group("everyone", "token_bucket")
    store.run(TAKE, asked, [20])
    settings = {
        "CACHES": redis_caches(redis_server.url),
        "RATELIMITS": {"STORE_TIMEOUT": TIMEOUT, "LOCAL_REFUSALS": 0},
    }
    helper = Thread(target=stop_for_a_while, args=(redis_server, tmp_path))
    helper.start()
    passed = run_processes(go_on_by_itself, 4, str(tmp_path), 100, settings=settings, timeout=200)
    helper.join()
    assert passed == [20] * 4
    assert used(store, asked) == [100]
    close(store)
