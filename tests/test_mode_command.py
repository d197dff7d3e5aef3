"""What whoever is on call types to have all limits refuse less for a while."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import DatabaseError
from freezegun import freeze_time

from ratelimits import switching
from ratelimits.exceptions import StoreUnavailable
from ratelimits.limiter import take
from ratelimits.models import ModeSwitch
from ratelimits.stores import get_store
from ratelimits.stores.guarded import GuardedStore
from tests.commands import run
from tests.doors import make_plan
from tests.fresh import PATIENT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh")]

NOON = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)


def told(*args: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run("ratelimits_mode", "--json", *args).out)
    return answer


@pytest.mark.parametrize("mode", ["shadow", "off"])
def test_a_weaker_mode_for_a_while(mode: str) -> None:
    make_plan("n 1/h")
    assert take("acme").allowed and not take("acme").allowed
    with freeze_time(NOON, ignore=["_pytest"]):
        ended = run("ratelimits_mode", mode, "--for", "30m", "--reason", "A client went mad.")
        assert ended.code == 0
        assert f"“{mode}” until" in ended.out and "A client went mad." in ended.out
        assert told() == {
            "mode": mode,
            "setting": "enforce",
            "until": (NOON + timedelta(minutes=30)).isoformat(),
            "by": ModeSwitch.objects.get().by,
            "reason": "A client went mad.",
        }
        assert take("acme").allowed
    with freeze_time(NOON + timedelta(minutes=30)):
        assert told()["mode"] == "enforce"


@pytest.mark.parametrize("args", [("enforce",), ("settings",)])
def test_back_to_the_settings(args: tuple[str, ...]) -> None:
    run("ratelimits_mode", "off", "--for", "2h")
    assert "“enforce”" in run("ratelimits_mode", *args).out
    assert told()["until"] is None
    assert ModeSwitch.objects.first().switch is None  # type: ignore[union-attr]


def test_to_enforce_above_a_weaker_setting_ends_after_a_day(settings: Any) -> None:
    settings.RATELIMITS = {"MODE": "shadow"}
    with freeze_time(NOON):
        answer = told("enforce")
        assert (answer["mode"], answer["setting"]) == ("enforce", "shadow")
        assert answer["until"] == (NOON + timedelta(days=1)).isoformat()


@pytest.mark.parametrize(
    "args",
    [
        ("shadow",),
        ("off",),
        ("off", "--for", "25h"),
        ("off", "--for", "0m"),
        ("off", "--for", "ever"),
        ("off", "--for", "1 month"),
        ("shadow", "--for", "30m", "--user", "nobody"),
    ],
)
def test_what_is_not_done(args: tuple[str, ...]) -> None:
    ended = run("ratelimits_mode", *args)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err
    assert not ModeSwitch.objects.exists()


def test_strict_is_for_probes() -> None:
    assert run("ratelimits_mode", "--strict").code == 0
    run("ratelimits_mode", "shadow", "--for", "30m")
    assert run("ratelimits_mode").code == 0
    assert run("ratelimits_mode", "--strict").code == 1


def test_who_it_was_is_in_the_history() -> None:
    user = User.objects.create_user("ann")
    run("ratelimits_mode", "shadow", "--for", "30m", "--user", "ann")
    row = ModeSwitch.objects.get()
    assert row.by == "ann"
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.is_addition()) == (user, str(row.pk), True)


def test_processes_that_count_alone_are_later() -> None:
    assert "within 30 seconds" in run("ratelimits_mode", "off", "--for", "1m").err


@pytest.mark.usefixtures("on_redis")
def test_a_store_that_is_away_is_told(settings: Any) -> None:
    settings.RATELIMITS = {**PATIENT, "CATALOG_TTL": 30}
    assert run("ratelimits_mode", "off", "--for", "1m").err == ""
    guarded = get_store()
    assert isinstance(guarded, GuardedStore)
    guarded.breaker.trip(StoreUnavailable("away"))
    ended = run("ratelimits_mode", "settings")
    assert ended.code == 0
    assert "The store did not take the news" in ended.err


def test_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise DatabaseError("away")

    monkeypatch.setattr(switching, "write_alias", away)
    assert run("ratelimits_mode").code == 2
