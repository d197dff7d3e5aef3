"""What only memcached does: items, their lifetimes, and swaps that others were faster with."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import pytest

from ratelimits.algorithms import Operation, State
from ratelimits.exceptions import StoreBusy, StoreError, StoreUnavailable
from ratelimits.stores.base import Group, Slot
from ratelimits.stores.entries import Entry, packed
from ratelimits.stores.guarded import GuardedStore
from ratelimits.stores.memcached import CATCH_UP, MemcachedStore
from tests.processes import run_processes
from tests.servers import MemcachedServer

from .examples import ALGORITHMS
from .shared import settings_for, slots, the_store
from .stores import DAY, HOUR, NOON, SECOND, Calls, left, limit, memcached_store, new_subject


@pytest.fixture
def memcached(memcached_server: MemcachedServer) -> Iterator[MemcachedStore]:
    """Empty; the server itself is `memcached_server`."""
    store = memcached_store(memcached_server.address)
    yield store
    store.servers.close()


def stored(store: MemcachedStore, calls: Calls) -> bytes | None:
    """The bytes of a caller's item."""
    item = store.servers.gets([store.make_key(calls.subject)]).get(store.make_key(calls.subject))
    return item and item.value


def seconds_left(store: MemcachedStore, calls: Calls) -> int:
    client = store.servers._of(store.make_key(calls.subject))
    return int(client.raw_command(f"mg {store.make_key(calls.subject)} t").split(b"t")[-1])


def one_of_each(store: MemcachedStore) -> Calls:
    return Calls(store, *(limit("10/m", name, algorithm=name) for name in ALGORITHMS))


def shared_with(calls: Calls, rate: str, per: str = "everyone") -> Slot:
    return Slot(limit(rate, "all", per=per), f"{per} {calls.subject}")


def test_one_item_holds_all_limits_of_a_caller(memcached: MemcachedStore) -> None:
    calls = one_of_each(memcached)
    assert calls.take(2).allowed
    value = stored(memcached, calls)
    assert value is not None
    assert value[:1] == b"\x01"
    assert len(value) == 1 + 4 * 49 + 12, "and one hit of the log"


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x02" + b"x" * 50, b"\x01half an entry", b"17"])
def test_another_format_is_as_good_as_nothing(value: bytes, memcached: MemcachedStore) -> None:
    calls = Calls(memcached, limit("10/m"))
    memcached.servers.set(memcached.make_key(calls.subject), value, 60)
    assert calls.take(10).allowed
    assert not calls.take().allowed


def test_refusals_and_peeks_leave_the_bytes_as_they_are(memcached: MemcachedStore) -> None:
    calls = one_of_each(memcached)
    calls.peek()
    assert stored(memcached, calls) is None
    calls.take(8)
    before = stored(memcached, calls)
    for cost in (3, 11, 10**9):
        assert not calls.take(cost).allowed
        assert not calls.peek(cost, NOON + SECOND).allowed
        assert stored(memcached, calls) == before


@pytest.mark.parametrize(
    ("rate", "options", "needed"),
    [
        ("10/m", {}, 6),
        ("10/h", {"algorithm": "sliding_log"}, 3600),
        ("10/d", {}, 8640),
        # More than a month, which memcached takes for a date unless told the date.
        ("1/60d", {}, 60 * 86400),
        ("1/60d", {"algorithm": "sliding_counter"}, 120 * 86400),
    ],
)
def test_an_item_lives_until_its_buckets_are_full(
    rate: str, options: Any, needed: int, memcached: MemcachedStore
) -> None:
    calls = Calls(memcached, limit(rate, **options))
    calls.take(at=None)
    slack = 60 * 86400 if "counter" in str(options) else 0
    # A server that gets no time to run has a clock that is some seconds behind.
    assert needed - slack <= seconds_left(memcached, calls) <= needed + 5 + CATCH_UP


def test_a_paused_server_forgets_nobody(
    memcached_server: MemcachedServer, memcached: MemcachedStore
) -> None:
    """Its clock stood still meanwhile, and jumps when it goes on."""
    for _ in range(3):
        calls = Calls(memcached, limit("10/s"))
        # With a connection that is open already, since who opens one sets the clock going.
        calls.peek()
        memcached_server.stop()
        time.sleep(1.5)
        memcached_server.cont()
        assert calls.take(10, at=None).allowed
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            assert not calls.take(9, at=None).allowed


def test_other_limits_of_a_caller_keep_their_time(memcached: MemcachedStore) -> None:
    calls = Calls(memcached, limit("10/d", "slow"))
    calls.take(10, at=None)
    Calls(memcached, limit("10/m", "fast"), subject=calls.subject).take(at=None)
    assert 86400 <= seconds_left(memcached, calls) <= 86400 + 12 + CATCH_UP
    assert not calls.take(at=None).allowed


def test_what_has_expired_is_dropped_but_not_by_a_clock_that_is_ahead(
    memcached: MemcachedStore,
) -> None:
    calls = Calls(memcached, limit("10/s", "brief"))
    other = Calls(memcached, limit("10/h", "other"), subject=calls.subject)
    calls.take(10)
    other.take(at=NOON + 9 * SECOND)
    assert not calls.take(at=NOON).allowed, "on a server whose clock is 9 s behind"
    other.take(at=NOON + 12 * SECOND)
    value = stored(memcached, calls)
    assert value is not None
    assert len(value) == 1 + 49


def test_a_flushed_or_restarted_server_has_full_buckets(
    memcached_server: MemcachedServer, memcached: MemcachedStore
) -> None:
    calls = Calls(memcached, limit("10/h"))
    for empty in (memcached_server.flush, memcached_server.restart):
        assert calls.take(10, at=None).allowed
        assert not calls.take(at=None).allowed
        empty()
    # The connection of before is closed: reading finds out, and nothing was written yet.
    assert calls.take(10, at=None).allowed


def test_versions(memcached: MemcachedStore) -> None:
    calls = Calls(memcached, limit("10/h"))
    group = Group(calls.group.slots, (("plans", "a"), ("tenant", "")))
    assert memcached.versions(["plans", "tenant"]) == ("", "")
    assert memcached.run(Operation.TAKE, group, [1]).stale is None
    memcached.set_versions({"plans": "b"}, 60 * 86400)
    assert memcached.run(Operation.TAKE, group, [1]).stale == ("b", "")
    assert left(calls.peek(at=None)) == {"limit": 9}
    memcached.set_versions({"plans": "a"}, 1)
    assert memcached.run(Operation.TAKE, group, [1]).stale is None


def failing(times: int, does: Callable[..., bool], key: str) -> Callable[..., bool]:
    """A swap that others are faster than, for so many times on one key."""
    left = [times]

    def swap(at: str, *args: Any) -> bool:
        if at == key and left[0]:
            left[0] -= 1
            return False
        return does(at, *args)

    return swap


def test_a_swap_that_fails_is_tried_again(
    memcached: MemcachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(memcached, limit("10/h"))
    calls.take()
    servers = memcached.servers
    key = memcached.make_key(calls.subject)
    monkeypatch.setattr(servers, "cas", failing(5, servers.cas, key))
    assert left(calls.take(2)) == {"limit": 7}


def test_what_was_taken_is_given_back_if_another_item_was_changed(
    memcached: MemcachedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of everyone is taken from first. Meanwhile the caller used up their own."""
    calls = Calls(memcached, limit("10/h"))
    everyone = shared_with(calls, "100/h")
    group = Group((*calls.group.slots, everyone))
    assert memcached.run(Operation.TAKE, group, [4, 4], NOON).allowed
    servers, key = memcached.servers, memcached.make_key(calls.subject)
    swap = servers.cas
    states: list[Any] = []

    def overtaken(at: str, *args: Any) -> bool:
        if at == key and not states:
            states.append(memcached.run(Operation.PEEK, group, [1, 1], NOON).states)
            monkeypatch.setattr(servers, "cas", swap)
            calls.take(3)
            monkeypatch.setattr(servers, "cas", overtaken)
        return swap(at, *args)

    monkeypatch.setattr(servers, "cas", overtaken)
    answer = memcached.run(Operation.TAKE, group, [5, 5], NOON)
    assert [state.used for state in states[0] if state] == [4, 9], "everyone's was taken from"
    assert not answer.allowed
    assert answer.fitted == (False, True)
    after = memcached.run(Operation.PEEK, group, [1, 1], NOON)
    assert [state.used for state in after.states if state] == [7, 4]


def test_a_second_item_that_refuses_costs_the_first_nothing(memcached: MemcachedStore) -> None:
    calls = one_of_each(memcached)
    group = Group(
        (*calls.group.slots, shared_with(calls, "3/h"), shared_with(calls, "9/h", "address"))
    )
    assert memcached.run(Operation.TAKE, group, [2] * 6, NOON).allowed
    before = stored(memcached, calls)
    refused = memcached.run(Operation.TAKE, group, [2] * 6, NOON)
    assert refused.fitted == (True,) * 4 + (False, True)
    assert stored(memcached, calls) == before
    assert memcached.run(Operation.TAKE, group, [1] * 6, NOON).allowed


def test_charges_and_refunds_of_several_items(memcached: MemcachedStore) -> None:
    calls = one_of_each(memcached)
    versions = (("plans", "a"),)
    group = Group((*calls.group.slots, shared_with(calls, "30/h")), versions)

    def used(operation: Operation, cost: int) -> list[int]:
        answer = memcached.run(operation, group, [cost] * 5, NOON)
        return [state.used for state in answer.states if state]

    assert used(Operation.CHARGE, 20) == [10, 10, 10, 10, 20]
    assert used(Operation.REFUND, 5) == [5, 5, 5, 5, 15]
    memcached.set_versions({"plans": "b"}, 60)
    assert memcached.run(Operation.CHARGE, group, [1] * 5, NOON).stale == ("b",)
    assert used(Operation.PEEK, 1) == []
    free = Group(group.slots)
    answer = memcached.run(Operation.PEEK, free, [1] * 5, NOON)
    assert [state.used for state in answer.states if state] == [5, 5, 5, 5, 15]


class TestTooManyAtOnce:
    """The time for attempts is over: the policy decides, and nobody was refused by a limit."""

    @pytest.fixture
    def busy(
        self, memcached_server: MemcachedServer, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[MemcachedStore]:
        # Long enough for a server on a busy machine, which is not what is late here.
        store = memcached_store(memcached_server.address, timeout=0.4)
        monkeypatch.setattr(store.servers, "add", lambda *args: False)
        yield store
        store.servers.close()

    def test_it_is_told_in_time(self, busy: MemcachedStore) -> None:
        started = time.monotonic()
        with pytest.raises(StoreBusy, match="at once"):
            Calls(busy, limit("10/h")).take()
        assert 0.1 < time.monotonic() - started < 5

    @pytest.mark.parametrize(
        ("policy", "allowed", "unavailable"),
        [("local", True, False), ("allow", True, False), ("deny", False, True)],
    )
    def test_the_policy_decides(
        self,
        policy: str,
        allowed: bool,
        unavailable: bool,
        busy: MemcachedStore,
        settings: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        settings.RATELIMITS = {"STORE_FAILURE": policy}
        guarded, charged = GuardedStore(busy), Mock()
        monkeypatch.setattr(guarded.charging, "soon", charged)
        group = Calls(guarded, limit("10/h")).group
        answer = guarded.run(Operation.TAKE, group, [1])
        assert (answer.allowed, answer.unavailable) == (allowed, unavailable)
        assert not guarded.breaker.is_open, "the store is there, for everybody else"
        assert charged.called == allowed

    async def test_async_too(self, busy: MemcachedStore, settings: Any) -> None:
        settings.RATELIMITS = {"STORE_FAILURE": "deny"}
        guarded = GuardedStore(busy)
        group = Calls(guarded, limit("10/h")).group
        assert (await guarded.arun(Operation.TAKE, group, [1])).unavailable
        assert not guarded.breaker.is_open


class TestFaults:
    def test_a_server_that_does_not_answer(self, memcached_server: MemcachedServer) -> None:
        store = memcached_store(memcached_server.address, timeout=0.3)
        calls = Calls(store, limit("10/h"))
        assert calls.take(at=None).allowed
        memcached_server.stop()
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match="timed out"):
            calls.take(at=None)
        assert time.monotonic() - started < 5
        memcached_server.cont()
        assert calls.take(at=None).allowed
        store.servers.close()

    def test_no_server(self, memcached_server: MemcachedServer, memcached: MemcachedStore) -> None:
        calls = Calls(memcached, limit("10/h"))
        calls.take()
        memcached_server.kill()
        for does in (calls.take, calls.peek, lambda: memcached.versions(["a"])):
            with pytest.raises(StoreUnavailable, match="memcached can't count now"):
                does()

    def test_a_server_among_others(self, memcached_server: MemcachedServer) -> None:
        """Its keys are not moved to the others, where all buckets would be full."""
        nowhere = "127.0.0.1:1"
        store = memcached_store([memcached_server.address, nowhere])
        answered = 0
        for _ in range(40):
            with suppress(StoreUnavailable):
                answered += Calls(store, limit("10/h")).take().allowed
        assert 5 < answered < 35
        store.servers.close()

    def test_logs_that_an_item_has_no_room_for(self, memcached: MemcachedStore) -> None:
        """Eight full logs of 10,000 are let in."""
        logs = [limit("10000/d", f"log {n}", algorithm="sliding_log") for n in range(8)]
        calls = Calls(memcached, *logs)
        hits = tuple((NOON - HOUR + number, 1) for number in range(9_999))
        entry = Entry(3, NOON + DAY, State(9_999, 0, 0, NOON - HOUR, hits))
        key = memcached.make_key(calls.subject)
        value = packed(dict.fromkeys(calls.group.idents, entry))
        memcached.servers.set(key, value, 600)
        assert calls.take().allowed
        assert not calls.take().allowed
        with pytest.raises(StoreError, match="larger than memcached lets an item be"):
            memcached.servers.set(key, value + value[1:], 600)


def test_forked_processes_have_connections_of_their_own(start_server: Any, tmp_path: Any) -> None:
    settings = settings_for("memcached", start_server, tmp_path)
    assert run_processes(fork_and_take, 1, new_subject(), settings=settings) == [[200, 200]]


def fork_and_take(index: int, subject: str) -> list[int]:
    """Two processes from one, which has used its connection already. How many takes each did."""
    store = the_store()
    group = Group(slots([subject, "500/w", "own", "token_bucket", "tenant"]))
    store.run(Operation.TAKE, group, [100])
    reading, writing = os.pipe()
    child = os.fork()
    allowed = sum(store.run(Operation.TAKE, group, [1]).allowed for _ in range(200))
    if not child:
        os.write(writing, str(allowed).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return [allowed, int(os.read(reading, 10))]


def test_keys_that_memcached_would_not_accept(memcached_server: MemcachedServer) -> None:
    from django.core.cache.backends.memcached import PyMemcacheCache

    for prefix in ("p" * 250, "with spaces", "ünïcode"):
        params = {"KEY_PREFIX": prefix, "VERSION": 2}
        store = MemcachedStore(PyMemcacheCache(memcached_server.address, params), 1)
        calls = Calls(store, limit("10/h"))
        assert calls.take(10).allowed
        assert not calls.take().allowed
        assert len(store.make_key(calls.subject)) <= 250
        store.servers.close()


def test_keys_have_the_prefix_and_version_of_the_alias(memcached_server: MemcachedServer) -> None:
    from django.core.cache.backends.memcached import PyMemcacheCache

    params = {"KEY_PREFIX": "shop", "VERSION": 2}
    store = MemcachedStore(PyMemcacheCache(memcached_server.address, params), 1)
    assert store.make_key("digest") == "shop:2:digest"


def test_reset_forgets_one_caller_only(memcached: MemcachedStore) -> None:
    one, two = one_of_each(memcached), one_of_each(memcached)
    assert one.take(10).allowed
    assert two.take(10).allowed
    memcached.reset(one.group)
    assert one.take(10).allowed
    assert not two.take().allowed
    memcached.reset(Group(()), [two.subject])
    assert two.take(10).allowed
