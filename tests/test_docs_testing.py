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
from tests.docs.pages import text_of
from tests.docs.samples import sample
from tests.doors import make_plan

pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db(transaction=True)]

PAGE = "docs/testing.md"
TEXT = text_of(PAGE)


class Search(APIView):
    throttle_classes = [PlanRateThrottle]

    def get(self, request: Any) -> Response:
        return Response({})


@ratelimit("1/d", by="ip", name="login")
def login(request: HttpRequest) -> HttpResponse:
    return HttpResponse("hello")


urlpatterns = [path("search", Search.as_view()), path("login", login)]


def block(holding: str) -> dict[str, Any]:
    """What a block of the page defines."""
    return defined(sample(PAGE, holding))


def defined(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": __name__, "TestCase": TestCase}
    exec(compile(text, PAGE, "exec"), names)
    return names


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        (sample(PAGE, "class ExportTests"), "ExportTests", 1),
        (sample(PAGE, "class SearchTests"), "SearchTests", 2),
        (sample(PAGE, "class QuotaTests"), "QuotaTests", 2),
        (sample("README.md", "class SearchTests"), "SearchTests", 1),
    ],
    ids=["export", "search", "quota", "readme"],
)
def test_tests_of_unittest(text: str, name: str, count: int) -> None:
    make_plan("api 1/d")
    tests = defined(text)[name]
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
