"""A mode that an operator switches to acts on the next take everywhere, and ends by itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.db import DatabaseError
from django.http import HttpResponse
from django.test import RequestFactory
from freezegun import freeze_time

from ratelimits import hearing as hearing_module
from ratelimits import rows
from ratelimits.decorators import ratelimit
from ratelimits.edits import is_told, shared
from ratelimits.exceptions import StoreUnavailable
from ratelimits.hearing import hearing
from ratelimits.limiter import atake, peek, take
from ratelimits.models import ModeSwitch, Plan
from ratelimits.modes import Switch, Version
from ratelimits.signals import mode_switched
from ratelimits.stores import get_store
from ratelimits.stores.guarded import GuardedStore
from tests.fresh import PATIENT, forget_everything, the_redis_store
from tests.servers import RedisServer
from tests.settings import CACHES as MEMORY
from tests.settings import database_caches, redis_caches
from tests.waiting import wait_until

from .edits import allowed_in_code, switch
from .other import Other

pytestmark = [pytest.mark.django_db(transaction=True)]

NOON = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)
TAKES: dict[str, Callable[[], bool]] = {
    "a plan's": lambda: take("acme", cost=100).allowed,
    "in code": allowed_in_code,
}
each_kind = pytest.mark.parametrize("kind", TAKES)


@pytest.fixture
def guarded(on_redis: RedisServer) -> GuardedStore:
    found = get_store()
    assert isinstance(found, GuardedStore)
    return found


@each_kind
@pytest.mark.usefixtures("acme")
def test_a_switch_in_another_process(kind: str, other: Other) -> None:
    """There and back, with a take in between: refused, let pass, refused, not counted, refused."""
    allowed = TAKES[kind]
    assert not allowed()
    other.ask("switch", "shadow", 60)
    assert allowed()
    other.ask("switch", "settings", 0)
    assert not allowed()
    other.ask("switch", "off", 60)
    assert allowed()
    other.ask("switch", "enforce", 60)
    wait_until(lambda: not allowed())


@each_kind
@pytest.mark.usefixtures("acme")
def test_a_switch_in_this_process(kind: str, other: Other) -> None:
    """Others hear of it, also one that has counted nothing yet."""

    def allowed() -> bool:
        if kind == "in code":
            return bool(other.ask("allowed_in_code"))
        return bool(other.ask("allowed", "acme", 100))

    switch("shadow", 60)
    assert allowed()
    switch("settings", 0)
    assert not allowed()
    switch("off", 60)
    assert allowed()
    switch("settings", 0)
    wait_until(lambda: not allowed())


@pytest.mark.usefixtures("acme")
def test_an_edit_of_a_plan_ends_no_switch(other: Other) -> None:
    other.ask("switch", "shadow", 60)
    other.ask("create_a_service_limit")
    assert allowed_in_code()
    assert take("acme", cost=100).allowed


@pytest.mark.usefixtures("acme")
def test_an_edit_of_a_plan_tells_what_the_store_forgot(
    other: Other, redis_server: RedisServer
) -> None:
    """Also by a process that has not heard of the switch."""
    switch("shadow", 60)
    redis_server.flush()
    assert not is_told(shared.switch)
    other.ask("create_a_service_limit")
    assert is_told(shared.switch)


@pytest.mark.usefixtures("acme", "on_redis")
def test_a_switch_lives_in_the_store_until_it_ends(settings: Any) -> None:
    """Longer than versions that nobody needs by then."""
    settings.RATELIMITS = {**PATIENT, "CATALOG_TTL": 1}
    switch("shadow", 3600)
    key = the_redis_store().make_key(shared.of_plans[0])
    assert 3590 < the_redis_store().client.ttl(key) <= 3602


@pytest.mark.usefixtures("acme", "fresh")
def test_it_ends_on_the_second(settings: Any, django_assert_num_queries: Any) -> None:
    """In every process by itself, without a query."""
    settings.RATELIMITS = {"CLOCK": "process"}
    with freeze_time(NOON, ignore=["_pytest"]) as clock:
        switch("shadow", 10)
        assert take("acme", cost=100).allowed
        with django_assert_num_queries(0):
            clock.move_to(NOON + timedelta(seconds=9, microseconds=999_999))
            assert take("acme", cost=100).allowed
            assert allowed_in_code()
            clock.move_to(NOON + timedelta(seconds=10))
            assert not take("acme", cost=100).allowed
            assert not allowed_in_code()


@pytest.mark.usefixtures("acme", "fresh")
def test_off_ends_on_the_second(settings: Any) -> None:
    settings.RATELIMITS = {"CLOCK": "process"}
    with freeze_time(NOON, ignore=["_pytest"]) as clock:
        switch("off", 10)
        assert take("acme").outcomes == ()
        clock.move_to(NOON + timedelta(seconds=10))
        assert len(take("acme").outcomes) == 1


@pytest.mark.usefixtures("acme", "on_redis")
def test_in_shadow_all_is_counted_and_nothing_published() -> None:
    """Just as with the setting."""
    switch("shadow", 60)
    decision = take("acme", cost=8)
    assert [outcome.remaining for outcome in decision.outcomes] == [2]
    assert decision.headers() == {}
    refused = take("acme", cost=8)
    assert refused.allowed
    assert not refused.outcomes[0].allowed
    switch("settings", 0)
    assert peek("acme", cost=1).outcomes[0].remaining == 0


@pytest.mark.usefixtures("acme")
def test_enforced_above_the_setting(settings: Any, other: Other) -> None:
    settings.RATELIMITS = {**PATIENT, "MODE": "shadow"}
    assert take("acme", cost=100).allowed
    other.ask("switch", "enforce", 60)
    assert not take("acme", cost=100).allowed
    assert not allowed_in_code()


@pytest.mark.usefixtures("acme")
def test_enforced_although_it_was_off(settings: Any, other: Other) -> None:
    """As one may want to in an attack. Nobody asks the database for it."""
    settings.RATELIMITS = {**PATIENT, "MODE": "off"}
    assert take("acme", cost=100).allowed
    other.ask("switch", "enforce", 60)
    wait_until(lambda: not take("acme", cost=100).allowed)


@pytest.mark.usefixtures("acme")
def test_off_sends_no_command_for_a_request(
    redis_server: RedisServer, on_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    take("acme")
    switch("off", 60)
    monkeypatch.setattr(hearing, "_due", float("inf"))
    before = redis_server.client().info("stats")["total_commands_processed"]
    assert all(take("acme", cost=100).allowed for _ in range(50))
    # The question itself is one.
    assert redis_server.client().info("stats")["total_commands_processed"] == before + 1


@pytest.mark.usefixtures("acme")
def test_off_is_heard_to_end_through_the_database_if_the_store_forgot(
    guarded: GuardedStore, other: Other, redis_server: RedisServer, settings: Any
) -> None:
    settings.RATELIMITS = {**PATIENT, "CATALOG_TTL": 0}
    switch("off", 60)
    assert take("acme", cost=100).allowed
    other.ask("switch", "settings", 0)
    redis_server.flush()
    wait_until(lambda: not take("acme", cost=100).allowed)


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("mode", ["shadow", "off"])
def test_the_store_is_away(mode: str, guarded: GuardedStore, other: Other) -> None:
    """The last known mode stays, and others are told of a new one when it is back."""
    switch(mode, 60)
    assert other.ask("allowed", "acme", 100)
    guarded.breaker.trip(StoreUnavailable("away"))
    assert take("acme", cost=100).allowed
    switch("settings", 0)
    assert other.ask("allowed", "acme", 100)
    wait_until(lambda: not other.ask("allowed", "acme", 100))


@pytest.mark.usefixtures("acme")
def test_the_database_is_away(other: Other, monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch is heard of all the same, and what was known stays in force."""
    take("acme")

    def away() -> None:
        raise DatabaseError("away")

    monkeypatch.setattr(rows, "load_plans", away)
    other.ask("switch", "shadow", 60)
    assert take("acme", cost=100).allowed
    assert take("acme", cost=100).allowed


@pytest.mark.usefixtures("on_redis")
def test_in_shadow_nobody_is_refused_because_plans_are_unknown(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RATELIMITS = {**PATIENT, "MODE": "shadow"}

    def away() -> None:
        raise DatabaseError("away")

    monkeypatch.setattr(rows, "load_plans", away)
    assert take("acme").allowed


def test_a_rollback_switches_nothing(acme: Any, on_redis: RedisServer) -> None:
    from django.db import transaction

    with transaction.atomic():
        switch("shadow", 60)
        # Those who switched see it at once.
        assert take("acme", cost=100).allowed
        transaction.set_rollback(True)
    assert not take("acme", cost=100).allowed
    assert allowed_in_code() is False


@pytest.mark.parametrize(("mode", "seconds"), [("off", 86_401), ("shadow", 0), ("other", 60)])
def test_no_switch_for_ever(mode: str, seconds: int) -> None:
    with pytest.raises(ValidationError):
        ModeSwitch.objects.switch(mode, seconds)
    assert not ModeSwitch.objects.exists()


@pytest.mark.usefixtures("acme", "fresh")
def test_a_row_written_past_the_form_ends_too(settings: Any) -> None:
    settings.RATELIMITS = {"CLOCK": "process"}
    with freeze_time(NOON, ignore=["_pytest"]) as clock:
        ModeSwitch.objects.create(mode="off", until=NOON + timedelta(days=999))
        assert take("acme", cost=100).allowed
        clock.move_to(NOON + timedelta(days=1))
        assert not take("acme", cost=100).allowed


@pytest.mark.usefixtures("fresh")
def test_it_is_told_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[dict[str, Any]] = []

    def hear(mode: str, until: datetime, by: str, reason: str, **kwargs: Any) -> None:
        heard.append({"mode": mode, "by": by, "reason": reason})

    mode_switched.connect(hear)
    try:
        ModeSwitch.objects.switch("shadow", 60, by="ann", reason="A client went mad.")
    finally:
        mode_switched.disconnect(hear)
    assert heard == [{"mode": "shadow", "by": "ann", "reason": "A client went mad."}]
    assert "by 'ann': A client went mad." in caplog.text


@pytest.mark.parametrize("text", ["", "a", "a*b", "a**shadow@99999999999", "a*b*off@99999999999"])
def test_versions_are_read_as_they_are_written(text: str) -> None:
    assert str(Version.read(text)) == text


@pytest.mark.parametrize("text", ["", "shadow", "shadow@", "shadow@x", "none@99999999999", "off@1"])
def test_what_is_no_switch(text: str) -> None:
    assert Switch.read(text) is None


def test_plans_of_a_test_that_rolls_back(plans: dict[str, Plan], on_redis: RedisServer) -> None:
    """A view's limit in code is counted under the version of the plans, and reads none."""
    view = ratelimit("1/h", by="ip", name="one")(lambda request: HttpResponse())
    request = RequestFactory().get
    assert [view(request("/")).status_code for _ in range(2)] == [200, 429]


@pytest.mark.usefixtures("acme")
def test_async_takes_hear_of_it_too(other: Other) -> None:
    def allowed() -> bool:
        return async_to_sync(atake)("acme", cost=100).allowed

    assert not allowed()
    other.ask("switch", "shadow", 60)
    assert allowed()
    other.ask("switch", "off", 60)
    assert allowed()
    other.ask("switch", "settings", 0)
    wait_until(lambda: not allowed())


@pytest.mark.parametrize(
    ("mode", "caches", "looks"),
    [
        ("off", database_caches(), False),
        ("off", MEMORY, False),
        ("off", redis_caches("redis://127.0.0.1:1"), True),
        ("enforce", MEMORY, True),
    ],
)
def test_who_looks_for_the_end_of_off(
    settings: Any, monkeypatch: pytest.MonkeyPatch, mode: str, caches: Any, looks: bool
) -> None:
    """Once for many requests. With the setting "off" nobody asks a database, also of a test."""
    started: list[str] = []
    monkeypatch.setattr(hearing_module, "in_background", lambda name, work: started.append(name))
    settings.CACHES, settings.RATELIMITS = caches, {"MODE": mode}
    forget_everything()
    shared.switch = Switch("off", 2**40)
    for _ in range(5):
        take("acme")
    assert started == ["mode"] * looks


def test_a_store_that_is_not_there_is_nobodys_affair_in_mode_off(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.CACHES = redis_caches("redis://127.0.0.1:1")
    settings.RATELIMITS = {"MODE": "off"}
    forget_everything()
    hearing.look()
    assert take("acme").allowed
    assert caplog.text == ""
