"""The gate: one store call, one sleep, everybody's block, and a share while the store is away."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from ratelimits.client.errors import NeverPasses, RetryLater, UnknownUpstream
from ratelimits.client.gate import Gate, Pass, credentials_of
from ratelimits.client.headers import Quota
from ratelimits.effects import adrive, drive
from ratelimits.models import Upstream, UpstreamLimit
from ratelimits.stores import get_store
from tests.conformance.watching import watch
from tests.servers import RedisServer
from tests.settings import redis_caches
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody sleeps in earnest; the store's clock is what it was after that."""
    waits: list[float] = []
    monkeypatch.setattr("ratelimits.client.gate.sleep", waits.append)

    async def asleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("ratelimits.client.gate.asleep", asleep)
    return waits


@pytest.fixture
def vendor(still: None) -> Upstream:
    vendor = Upstream.objects.create(slug="vendor", guard=0, max_wait=5)
    vendor.limits.create(name="calls", rate="1/s", burst=2, kind="bucket")
    return vendor


def enter(gate: Gate, *args: Any) -> Pass:
    return drive(gate.enter(*args))


def test_calls_leave_one_after_the_other(vendor: Upstream, slept: list[float]) -> None:
    gate = Gate("vendor", "key")
    assert [round(enter(gate).waited, 3) for _ in range(4)] == [0, 0, 1, 2]
    assert slept == [1, 2]


async def test_async_calls_stand_in_the_same_line(vendor: Upstream, slept: list[float]) -> None:
    passed = await asyncio.gather(*(adrive(Gate("vendor", "key").enter()) for _ in range(4)))
    assert sorted(one.waited for one in passed) == [0, 0, 1, 2]
    assert sorted(slept) == [1, 2]


def test_each_credential_has_its_own(vendor: Upstream) -> None:
    for credential in ("one", "two"):
        assert [enter(Gate("vendor", credential)).waited for _ in range(2)] == [0, 0]


def test_too_long_is_told_at_once(vendor: Upstream, slept: list[float]) -> None:
    gate = Gate("vendor", "key")
    for _ in range(7):
        enter(gate)
    del slept[:]
    with pytest.raises(RetryLater) as raised:
        enter(gate)
    assert (raised.value.limit, slept) == ("calls", [])
    assert 0 < raised.value.delay <= 6
    assert "vendor: the limit calls is used up" in str(raised.value)
    # Nothing was booked, and whoever may wait for longer does.
    assert enter(gate, 1, 10.0).waited == 6


def test_who_may_not_wait_does_not(vendor: Upstream, slept: list[float]) -> None:
    Upstream.objects.update(max_wait=0)
    gate = Gate("vendor", "key")
    enter(gate), enter(gate)
    with pytest.raises(RetryLater) as raised:
        enter(gate)
    assert raised.value.delay == 1
    assert slept == []


def test_a_block_is_everybodys(vendor: Upstream, slept: list[float]) -> None:
    drive(Gate("vendor", "key").block(3, "429, Retry-After: 3"))
    assert enter(Gate("vendor", "key")).waited == 3
    assert enter(Gate("vendor", "other")).waited == 0
    drive(Gate("vendor", "key").block(3600, "429, Retry-After: 3600"))
    with pytest.raises(RetryLater, match="blocked by 429, Retry-After: 3600") as raised:
        enter(Gate("vendor", "key"))
    assert raised.value.delay >= 3600
    drive(Gate("vendor", "key").lift())
    assert enter(Gate("vendor", "key")).waited == 0


def test_a_block_that_comes_while_one_sleeps(
    vendor: Upstream, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its moment is given up, and another one booked."""
    gate = Gate("vendor", "key")
    enter(gate), enter(gate)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 1:
            drive(Gate("vendor", "key").block(4, "429"))

    monkeypatch.setattr("ratelimits.client.gate.sleep", sleep)
    enter(gate)
    assert slept[0] == 1
    assert slept[1] >= 4


def test_what_an_answer_says_goes_with_the_next_call(vendor: Upstream) -> None:
    gate = Gate("vendor", "key")
    gate.observe(enter(gate), [Quota("calls", 2, 0, 1)], "RateLimit: calls;r=0;t=1")
    assert 0 < enter(gate).waited <= 1
    found = drive(gate.look())
    assert found.seen == "RateLimit: calls;r=0;t=1"
    assert found.seen_ago == 0


@pytest.mark.parametrize(
    ("quota", "is_heard"),
    [
        (Quota("", None, 0, None, None), True),
        (Quota("theirs", 1, 0, 1, 1), True),
        (Quota("per day", 1000, 0, 3600, 86400), False),
        (Quota("", 1, None, 1, 1), False),
    ],
)
def test_which_limit_an_answer_speaks_of(vendor: Upstream, quota: Quota, is_heard: bool) -> None:
    gate = Gate("vendor", "key")
    gate.observe(enter(gate), [quota])
    assert (enter(gate).waited > 0) is is_heard


def test_customers_have_a_share(vendor: Upstream, slept: list[float]) -> None:
    UpstreamLimit.objects.update(rate="10/s", burst=10)
    vendor.limits.create(name="share", rate="1/s", kind="bucket", per="tenant")
    Upstream.objects.update(max_wait=3600)
    for turn in range(5):
        # It asks again when its turn has come, for which time stands still here.
        assert enter(Gate("vendor", "key", "noisy")).waited == turn
    assert enter(Gate("vendor", "key", "quiet")).waited == 0
    # Without a customer, only what is everybody's.
    assert enter(Gate("vendor", "key")).waited == 0


def test_an_edit_acts_on_the_next_call(vendor: Upstream) -> None:
    gate = Gate("vendor", "key")
    enter(gate), enter(gate)
    UpstreamLimit.objects.update(rate="4/s")
    assert enter(gate).waited == 0.25
    vendor.limits.all().delete()
    assert enter(gate).waited == 0


def test_names_and_numbers_that_make_no_sense(vendor: Upstream) -> None:
    with pytest.raises(UnknownUpstream, match=r'"nobody".*admin'):
        enter(Gate("nobody", "key"))
    with pytest.raises(UnknownUpstream):
        Gate("nobody", "key").terms  # noqa: B018
    with pytest.raises(NeverPasses, match=r'3 units never passes "calls".*2 at most'):
        enter(Gate("vendor", "key"), 3)
    for cost in (0, -1, True, 1.5, "1"):
        with pytest.raises(ValueError, match="whole number"):
            enter(Gate("vendor", "key"), cost)


def test_a_share_is_no_limit_of_calls_in_nobodys_name(vendor: Upstream) -> None:
    vendor.limits.create(name="share", rate="1/h", per="tenant")
    assert enter(Gate("vendor", "key"), 2).waited == 0
    with pytest.raises(NeverPasses, match='"share"'):
        enter(Gate("vendor", "key", "acme"), 2)


def test_look_changes_nothing(vendor: Upstream) -> None:
    gate = Gate("vendor", "key")
    enter(gate), enter(gate)
    drive(gate.block(30, "429, Retry-After: 30", "Retry-After: 30"))
    drive(gate.block(1, "429"))
    for _ in range(2):
        found = drive(gate.look())
        (pace,) = found.paces
        assert (pace.pace.name, pace.used, pace.most) == ("calls", 2, 2)
        assert (found.blocked_for, found.by) == (30, "429, Retry-After: 30")
        assert (found.calls, found.refused, found.is_too_high) == (2, 2, True)
        assert found.seen == "Retry-After: 30"


@pytest.mark.parametrize(("rate", "is_above"), [("10/s", False), ("20/s", True), ("9/s", False)])
def test_a_limit_above_what_the_vendor_publishes(
    vendor: Upstream, rate: str, is_above: bool
) -> None:
    UpstreamLimit.objects.update(rate=rate)
    gate = Gate("vendor", "key")
    seen = 'RateLimit-Policy: "default";q=10;w=1\nRateLimit: "default";r=9;t=1'
    gate.observe(enter(gate), [], seen)
    enter(gate)
    found = drive(gate.look())
    assert found.is_too_high is is_above
    assert [pace.name for pace in found.above] == ["calls"] * is_above


def test_a_block_of_no_refusal_does_not_count_as_one(vendor: Upstream) -> None:
    gate = Gate("vendor", "key")
    drive(gate.block(1e12, "503", refused=False))
    found = drive(gate.look())
    assert (found.refused, found.is_too_high) == (0, False)
    assert found.blocked_for > 300 * 86400


def test_credentials_in_use_are_known_by_their_digests(vendor: Upstream) -> None:
    for credential in ("one", "two", "one"):
        enter(Gate("vendor", credential))
    wait_until(lambda: sorted(credentials_of("vendor")) == ["one", "two"])


@pytest.fixture
def on_redis(settings: Any, redis_server: RedisServer) -> RedisServer:
    settings.CACHES = redis_caches(redis_server.url)
    settings.RATELIMITS = {"STORE_TIMEOUT": 20, "WORKERS": 4}
    return redis_server


def test_one_command_for_each_call(on_redis: RedisServer, vendor: Upstream) -> None:
    gate = Gate("vendor", "key")
    enter(gate)
    wait_until(lambda: credentials_of("vendor") == ["key"])
    with watch(on_redis) as seen:
        enter(gate)
        # This one sleeps, and then looks whether it still may.
        enter(gate)
    assert [command.split()[0] for command in seen.sent] == ["EVALSHA"] * 3


def test_the_server_may_forget_the_script(on_redis: RedisServer, vendor: Upstream) -> None:
    enter(Gate("vendor", "key"))
    on_redis.client().script_flush()
    assert enter(Gate("vendor", "key")).waited == 0


def test_nothing_in_the_store_tells_a_credential(on_redis: RedisServer, vendor: Upstream) -> None:
    enter(Gate("vendor", "a digest", "customer-7"))
    client = on_redis.client()
    wait_until(lambda: len(client.keys()) >= 2)
    for key in client.scan_iter():
        assert b"customer" not in key and b"vendor" not in key
        assert client.pttl(key) > 0


def test_while_the_store_is_away_each_process_has_its_share(
    on_redis: RedisServer, vendor: Upstream, slept: list[float]
) -> None:
    enter(Gate("vendor", "key"))
    on_redis.kill()
    # One at once, then a quarter of what everybody has.
    other = Gate("vendor", "other")
    assert enter(other).waited == 0
    assert 3.5 < enter(other).waited <= 4
    with pytest.raises(RetryLater):
        enter(other)
    gate = Gate("vendor", "key")
    drive(gate.block(60, "429"))
    with pytest.raises(RetryLater, match="blocked by 429"):
        enter(gate)
    on_redis.start()
    store: Any = get_store()
    wait_until(lambda: not store.breaker.is_open)
    assert enter(gate).waited == 0


def test_a_process_that_is_left_alone_goes_on_from_its_own_calls(
    on_redis: RedisServer, vendor: Upstream, slept: list[float]
) -> None:
    UpstreamLimit.objects.update(rate="4/s", burst=4)
    gate, idle, told = (Gate("vendor", name) for name in ("key", "idle", "told"))
    for _ in range(6):
        enter(gate)
    drive(told.block(60, "429"))
    on_redis.kill()
    del slept[:]
    # Four of its calls were one second's worth of everybody, and the last two left later.
    assert 1 < enter(gate).waited <= 1.5
    assert enter(idle).waited == 0
    with pytest.raises(RetryLater, match="blocked by 429"):
        enter(told)


def test_without_a_cache_each_process_is_alone(settings: Any, vendor: Upstream) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    gate = Gate("vendor", "key")
    assert enter(gate).waited == 0
    assert 0 < enter(gate).waited <= 1


def test_a_thread_that_really_sleeps(
    vendor: Upstream, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.undo()
    UpstreamLimit.objects.update(rate="20/s", burst=1)
    gate = Gate("vendor", "key")
    enter(gate)
    began = time.monotonic()
    enter(gate)
    assert time.monotonic() - began >= 0.04
