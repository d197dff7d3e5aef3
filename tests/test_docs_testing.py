"""What docs/testing.md shows is what happens."""

from __future__ import annotations

import re
import unittest
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, TestCase
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits import testing
from ratelimits.conf import DEFAULTS
from ratelimits.decorators import ratelimit
from ratelimits.testing.plugin import RateLimits, ratelimits, ratelimits_off  # noqa: F401
from ratelimits.throttling import PlanRateThrottle
from tests.doors import make_plan
from tests.processes import ROOT

pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db(transaction=True)]

TEXT = (ROOT / "docs" / "testing.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


class Search(APIView):
    throttle_classes = [PlanRateThrottle]

    def get(self, request: Any) -> Response:
        return Response({})


@ratelimit("1/d", by="ip", name="login")
def login(request: HttpRequest) -> HttpResponse:
    return HttpResponse("hello")


urlpatterns = [path("search", Search.as_view()), path("login", login)]


README = (ROOT / "README.md").read_text()
IN_README = re.findall(r"```python\n(from ratelimits.testing .*?)```", README, re.DOTALL)


def block(holding: str, blocks: list[str] = BLOCKS) -> dict[str, Any]:
    """What a block of the page defines."""
    (text,) = [text for text in blocks if holding in text]
    names: dict[str, Any] = {"__name__": __name__, "TestCase": TestCase}
    exec(compile(text, "docs/testing.md", "exec"), names)
    return names


def test_each_block_is_tried_here() -> None:
    assert len(BLOCKS) == 6


@pytest.mark.parametrize(
    ("blocks", "name", "count"),
    [
        (BLOCKS, "ExportTests", 1),
        (BLOCKS, "SearchTests", 2),
        (BLOCKS, "QuotaTests", 2),
        (IN_README, "SearchTests", 1),
    ],
)
def test_tests_of_unittest(blocks: list[str], name: str, count: int) -> None:
    make_plan("api 1/d")
    tests = block(f"class {name}", blocks)[name]
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(tests).run(result)
    assert (result.testsRun, result.errors, result.failures) == (count, [], [])


def test_the_settings_of_all_tests(settings: Any, client: Client) -> None:
    settings.RATELIMITS = block('"MODE": "off"')["RATELIMITS"]
    make_plan("api 1/d")
    assert [client.get("/search").status_code for _ in range(3)] == [200] * 3
    with testing.override("1/d", plan="free"):
        assert [client.get("/search").status_code for _ in range(2)] == [200, 429]


def test_the_plugin_is_there() -> None:
    (name,) = block("pytest_plugins")["pytest_plugins"]
    assert name == RateLimits.__module__


def test_a_test_of_pytest(client: Client, ratelimits: RateLimits) -> None:  # noqa: F811
    make_plan("api 1/d")
    block("usefixtures")["test_the_third_is_refused"](client, ratelimits)


@pytest.mark.usefixtures("ratelimits_off")
def test_a_test_of_something_else(client: Client) -> None:
    make_plan("api 1/d")
    test = block("usefixtures")["test_as_often_as_it_takes"]
    assert [mark.args for mark in test.pytestmark] == [("ratelimits_off",)]
    test(client)


def test_what_is_named_is_there() -> None:
    named = set(re.findall(r"`@?([a-z_]+)\(", TEXT)) - {"ratelimit"}
    assert named == set(testing.__all__)
    assert set(re.findall(r'`"([A-Z_]+)"', TEXT)) <= set(DEFAULTS)
    (told,) = re.findall(r"for \(([^)]*)\) holds until", TEXT)
    assert all(hasattr(RateLimits, name) for name in re.findall("[a-z]+", told))
    assert "(docs/testing.md)" in README
    assert "(testing.md)" in (ROOT / "docs" / "coming-from.md").read_text()
