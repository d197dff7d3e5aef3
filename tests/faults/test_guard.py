"""What the guard of a store does about faults that no server is needed for."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from ratelimits.algorithms import Operation
from ratelimits.exceptions import StoreError, StoreUnavailable
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.signals import store_down, store_up
from ratelimits.stores import breaker as breakers
from ratelimits.stores.base import Answer, Group, Slot, Store
from ratelimits.stores.guarded import GuardedStore

LIMIT = Limit("n", Rate.parse("3/d"))


class Failing(Store):
    """Does what it is told to do instead of counting, and counts how often."""

    def __init__(self, fail: Callable[[], Any]) -> None:
        self.fail = fail
        self.asked = 0
        self.lock = threading.Lock()

    def run(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        with self.lock:
            self.asked += 1
        # As real ones keep what they make of a group.
        group.prepared[self] = self
        answer: Answer = self.fail()
        return answer

    def versions(self, keys: Sequence[str]) -> tuple[str, ...]:
        raise NotImplementedError

    def set_versions(self, versions: Mapping[str, str], seconds: int) -> None:
        raise NotImplementedError

    def count_processes(self, ident: str, seconds: int) -> int:
        return 1

    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        raise NotImplementedError


def one_limit() -> Group:
    """A new one each time: while it lives, so do the stores that it was asked of."""
    return Group((Slot(LIMIT, "caller"),))


def takes(guarded: GuardedStore, times: int) -> list[bool]:
    group = one_limit()
    return [guarded.run(Operation.TAKE, group, [1]).allowed for _ in range(times)]


def away() -> None:
    raise StoreUnavailable("away")


def confused() -> None:
    raise AttributeError("a bug of a client library")


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_bug_of_a_client_is_no_fault_of_the_view(caplog: pytest.LogCaptureFixture) -> None:
    guarded = GuardedStore(Failing(confused))
    assert takes(guarded, 4) == [True, True, True, False]
    assert not guarded.breaker.is_open
    # A thread may say by now that it can't charge for them, and why.
    bugs = [record for record in caplog.records if "A bug in the store" in record.getMessage()]
    assert {record.exc_info is not None for record in bugs} == {True}
    with pytest.raises(StoreError):
        guarded.reset(one_limit())


async def test_those_who_wait_for_a_thread_do_not_wait_for_the_store() -> None:
    """There are few threads, and each of the callers would hold one for the whole timeout."""

    def time_out() -> None:
        time.sleep(0.2)
        away()

    store = Failing(time_out)
    guarded = GuardedStore(store)
    group = one_limit()
    takes = (guarded.arun(Operation.TAKE, group, [1]) for _ in range(200))
    answers = await asyncio.gather(*takes)
    assert sum(answer.allowed for answer in answers) == 3
    # As many as there are threads in asyncio's pool, whatever the machine.
    assert store.asked <= 32


def test_no_thread_for_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the interpreter's end, or at the limit of a container: later, then."""
    monkeypatch.setattr(breakers, "PROBE_EVERY", 0.01)
    guarded = GuardedStore(store := Failing(away))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert takes(guarded, 2) == [True, True]
    asked = store.asked
    assert takes(guarded, 2) == [True, False]
    wait_for(lambda: store.asked > asked)


def test_no_thread_for_receivers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They are not told, but no request fails, and they are told of what comes later."""
    monkeypatch.setattr(breakers, "PROBE_EVERY", 0.01)
    told: list[object] = []

    def hear(signal: object, **kwargs: Any) -> None:
        told.append(signal)

    store_down.connect(hear)
    store_up.connect(hear)
    try:
        guarded = GuardedStore(store := Failing(away))
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            assert takes(guarded, 1) == [True]
        assert "not told" in caplog.text
        store.fail = confused
        takes(guarded, 1)
        wait_for(lambda: told == [store_up])
    finally:
        store_down.disconnect(hear)
        store_up.disconnect(hear)


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_probe_that_finds_a_bug(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The store answers: it must not be taken to be away for ever."""
    monkeypatch.setattr(breakers, "PROBE_EVERY", 0.01)
    guarded = GuardedStore(store := Failing(away))
    takes(guarded, 1)
    store.fail = confused
    wait_for(lambda: not guarded.breaker.is_open)
    assert "probe" in caplog.text


@pytest.mark.parametrize("is_told", [True, False])
def test_a_store_that_was_replaced_is_left_alone(
    is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breakers, "PROBE_EVERY", 0.01)
    before = set(threading.enumerate())
    guarded = GuardedStore(Failing(away))
    takes(guarded, 1)
    # What an earlier test has made wait may be charged meanwhile.
    others = [one for one in threading.enumerate() if one not in before]
    probing = [one for one in others if one.name == "ratelimits-probe"]
    assert len(probing) == 1
    wait_for(lambda: guarded.store.asked > 2)  # type: ignore[attr-defined]
    if is_told:
        guarded.stop()
    else:
        # Nobody has it any more.
        del guarded
        gc.collect()
    wait_for(lambda: not probing[0].is_alive())
