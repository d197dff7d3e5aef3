from __future__ import annotations

import unittest
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client, override_settings
from django.urls import path

from ratelimits.conf import above
from ratelimits.decorators import ratelimit
from ratelimits.hearing import hearing
from ratelimits.limiter import atake, peek, take
from ratelimits.testing import off
from tests.commands import run
from tests.doors import is_silent, make_plan, own_limit, per_address, statuses
from tests.views import OURS, SERVERS, AnyClient, function, hello

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]
urlpatterns = [
    path("sync", ratelimit("0/d", by="ip")(hello)),
    path("async", ratelimit("0/d", by="ip")(function(hello, True))),
    path("protected", hello),
]


@pytest.fixture(autouse=True)
def refusing(settings: Any) -> None:
    """Every door refuses."""
    settings.MIDDLEWARE = [OURS]
    settings.RATELIMITS = {"PROTECT": ["/protected"]}
    make_plan("api 0/d")


@pytest.mark.parametrize("url", ["/sync", "/async", "/protected"])
@SERVERS
async def test_no_door_limits(caller: AnyClient, url: str) -> None:
    caller = AnyClient(caller.is_async)
    assert await caller.statuses(1, url=url) == [429]
    with off():
        response = await caller.get(url)
        assert (response.status_code, is_silent(response)) == (200, True)
    assert await caller.statuses(1, url=url) == [429]


def test_limits_per_address(client: Client) -> None:
    per_address("0/d")
    with off():
        assert statuses(lambda: client.get("/elsewhere"), 2) == [404, 404]
    assert statuses(lambda: client.get("/elsewhere"), 2) == [429, 429]


def test_nothing_is_counted() -> None:
    own_limit("acme", "2/d")
    with off():
        for _ in range(3):
            assert take("acme").outcomes == ()
    assert [outcome.remaining for outcome in peek("acme").outcomes] == [2]


@off()
def decorated(word: str) -> tuple[bool, str]:
    return take("acme").allowed, word


@off()
async def adecorated(word: str) -> tuple[bool, str]:
    return (await atake("acme")).allowed, word


async def test_as_an_async_block() -> None:
    async with off():
        assert (await atake("acme")).allowed
    assert not (await atake("acme")).allowed
    with pytest.raises(ZeroDivisionError):
        async with off():
            1 / 0  # noqa: B018
    assert above == []


async def test_as_a_decorator() -> None:
    for _ in range(2):
        assert await sync_to_async(decorated)("a") == (True, "a")
        assert await adecorated("a") == (True, "a")
        assert not (await atake("acme")).allowed


def test_as_a_decorator_of_tests() -> None:
    """Whatever order they run in, and also those that are inherited."""

    class Tests(unittest.TestCase):
        def test_one(self) -> None:
            assert take("acme").allowed

        def test_another(self) -> None:
            assert take("acme").allowed

    class Inherited(Tests):
        pass

    for tests in (off()(Tests), Inherited):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(tests).run(result)
        assert (result.testsRun, result.errors, result.failures) == (2, [], [])
    assert not take("acme").allowed
    with pytest.raises(TypeError, match=r"unittest\.TestCase"):
        off()(object)


def test_before_settings_that_a_test_overrides() -> None:
    with off(), override_settings(RATELIMITS={"MODE": "enforce"}):
        assert take("acme").allowed
    with override_settings(RATELIMITS={"MODE": "enforce"}):
        with off():
            assert take("acme").allowed
        assert not take("acme").allowed


def test_before_what_an_operator_has_switched_to(settings: Any) -> None:
    settings.RATELIMITS = {"MODE": "off"}
    assert run("ratelimits_mode", "enforce", "--for", "1h").code == 0
    assert not take("acme").allowed
    with off():
        assert take("acme").allowed
    assert not take("acme").allowed


def test_nobody_asks_in_the_background(
    on_redis: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is done where the settings say "off", in case that an operator switches it back."""
    asked: list[str] = []
    monkeypatch.setattr("ratelimits.hearing.in_background", lambda name, look: asked.append(name))
    with off():
        assert take("acme").allowed
    assert asked == []
    hearing.forget()
    settings.RATELIMITS = {"MODE": "off"}
    assert take("acme").allowed
    assert asked == ["mode"]


def test_nothing_is_left_behind_by_a_test_that_fails() -> None:
    with pytest.raises(ZeroDivisionError), off():
        1 / 0  # noqa: B018
    assert above == []
    assert not take("acme").allowed
