from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client, override_settings
from django.urls import path

from ratelimits import edits
from ratelimits.conf import above, conf
from ratelimits.limiter import take
from ratelimits.testing import fresh_counts, off, reset
from ratelimits.testing.blocks import announce
from ratelimits.throttling import UserRateThrottle
from ratelimits.usage.recorder import recorder
from tests.doors import make_plan, statuses
from tests.testing.limited import View

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__), pytest.mark.usefixtures("still")]


class Hourly(UserRateThrottle):
    rate = "1/hour"


class DropIn(View):
    throttle_classes = [Hourly]


urlpatterns = [path("plan", View.as_view()), path("drop-in", DropIn.as_view())]
URLS = pytest.mark.parametrize("url", ["/plan", "/drop-in"])


def both_orders(client: Client, url: str) -> None:
    """Case 70: two tests of one request each, in whichever order."""

    @fresh_counts()
    def one() -> None:
        assert client.get(url).status_code == 200

    def another() -> None:
        with fresh_counts():
            assert statuses(lambda: client.get(url), 2) == [200, 429]

    for test in (one, another, another, one):
        test()


@URLS
def test_tests_do_not_meet_in_memory(client: Client, url: str) -> None:
    make_plan("api 1/d")
    both_orders(client, url)


@URLS
def test_tests_do_not_meet_on_redis(client: Client, on_redis: Any, url: str) -> None:
    make_plan("api 1/d")
    cache.set("session", "kept")
    both_orders(client, url)
    assert cache.get("session") == "kept"


def test_what_was_counted_before_is_there_again() -> None:
    make_plan("api 1/d")
    assert take("acme").allowed
    with fresh_counts():
        assert take("acme").allowed
    assert not take("acme").allowed


def test_the_settings_stay_as_they_are(settings: Any) -> None:
    settings.RATELIMITS = {"MODE": "shadow"}
    make_plan("api 1/d")
    with fresh_counts():
        assert [take("acme").allowed for _ in range(2)] == [True, True]
    assert settings.RATELIMITS == {"MODE": "shadow"}


@URLS
def test_the_switch_for_tests_of_something_else(client: Client, url: str) -> None:
    """Case 70, with the switch."""
    make_plan("api 1/d")
    for switch in (override_settings(RATELIMITS={"MODE": "off"}), off()):
        with switch:
            assert statuses(lambda: client.get(url), 3) == [200] * 3
    assert statuses(lambda: client.get(url), 2) == [200, 429]


def test_settings_that_a_test_overrides_take_no_counts_along() -> None:
    make_plan("api 1/d")
    assert take("acme").allowed
    with fresh_counts():
        assert take("acme").allowed
        with override_settings(RATELIMITS={"CATALOG_TTL": 10}):
            assert not take("acme").allowed


def test_a_block_within_itself() -> None:
    make_plan("api 1/d")
    counts = fresh_counts()
    with counts:
        assert take("acme").allowed
        with counts:
            assert take("acme").allowed
        assert not take("acme").allowed
    with counts:
        assert take("acme").allowed


def test_nothing_is_left_behind_by_a_test_that_fails() -> None:
    before = conf.KEY_SECRET
    with pytest.raises(ZeroDivisionError), fresh_counts():
        assert before != conf.KEY_SECRET
        1 / 0  # noqa: B018
    assert (conf.KEY_SECRET, above) == (before, [])


@pytest.fixture
def end_of_reset() -> Iterator[None]:
    """One outside of any block holds for as long as the process."""
    yield
    above.clear()
    announce()


@URLS
@pytest.mark.usefixtures("end_of_reset")
def test_reset(client: Client, url: str) -> None:
    make_plan("api 1/d")
    for _ in range(2):
        assert statuses(lambda: client.get(url), 2) == [200, 429]
        reset()


@pytest.mark.usefixtures("end_of_reset")
def test_reset_on_redis_deletes_nothing(client: Client, on_redis: Any) -> None:
    make_plan("api 1/d")
    cache.set("session", "kept")
    assert statuses(lambda: client.get("/plan"), 2) == [200, 429]
    keys = set(on_redis.client().keys())
    reset()
    assert keys <= set(on_redis.client().keys())
    assert statuses(lambda: client.get("/plan"), 2) == [200, 429]


def test_reset_ends_with_the_block_around_it() -> None:
    make_plan("api 1/d")
    assert take("acme").allowed
    with fresh_counts():
        assert take("acme").allowed
        with off():
            reset()
        assert [take("acme").allowed for _ in range(2)] == [True, False]
    assert not take("acme").allowed
    assert above == []


@pytest.mark.usefixtures("end_of_reset")
def test_reset_reads_limits_anew() -> None:
    """Also if they were changed where nobody hears of it."""
    make_plan("api 1/d")
    assert take("acme").allowed
    edits._open.clear()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ratelimits_planlimit SET rate = '3/d'")
    reset()
    assert [take("acme").allowed for _ in range(4)] == [True] * 3 + [False]


def test_what_is_logged_once_is_logged_in_each_test(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        with fresh_counts():
            assert take("acme").allowed
    told = [record for record in caplog.records if "There is no plan" in record.message]
    assert len(told) == 2


def test_usage_of_one_test_is_not_in_the_pages_of_another() -> None:
    make_plan("api 9/d")
    with fresh_counts():
        take("acme")
        assert recorder.queue
    assert not recorder.queue
