"""What docs/coming-from.md shows is what happens."""

from __future__ import annotations

import re
import unittest
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.urls import path
from freezegun import freeze_time
from rest_framework.decorators import api_view
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from ratelimits import throttling
from ratelimits.conf import DEFAULTS
from ratelimits.decorators import ratelimit
from ratelimits.throttling import UserRateThrottle
from tests.docs.pages import text_of
from tests.docs.samples import sample
from tests.doors import left, make_plan
from tests.dropins.test_of_drf import DIFFERENT
from tests.processes import ROOT

pytestmark = [pytest.mark.urls(__name__), pytest.mark.usefixtures("still")]

PAGE = "docs/coming-from.md"
TEXT = text_of(PAGE)


class Twice(UserRateThrottle):
    rate = "2/hour"


class Limited(APIView):
    throttle_classes = [Twice]

    def get(self, request: Any) -> Response:
        return Response({})


urlpatterns = [path("limited", Limited.as_view())]


def block(holding: str) -> dict[str, Any]:
    """What a block of the page defines."""
    given = (APIView, HttpResponse, ratelimit)
    names: dict[str, Any] = {each.__name__: each for each in given} | {"__name__": __name__}
    exec(compile(sample(PAGE, holding), PAGE, "exec"), names)
    return names


def limited(*kinds: Any) -> Any:
    made: Any = type("Made", (APIView,), {"throttle_classes": kinds, "post": answer})
    return made.as_view()


def answer(view: APIView, request: Any) -> Response:
    return Response({})


def test_another_import() -> None:
    names = block("class LoginThrottle")
    assert {getattr(throttling, name) for name in throttling.__all__} >= {
        names[name] for name in names if name.endswith("RateThrottle") and name[0] != "B"
    }
    view, factory = limited(names["LoginThrottle"]), APIRequestFactory()

    def tried(**data: str) -> int:
        return int(view(factory.post("/", data, format="json")).status_code)

    assert [tried(username="Ada") for _ in range(6)] == [200] * 5 + [429]
    assert [tried() for _ in range(6)] == [200] * 6


def test_the_settings_of_drf(settings: Any) -> None:
    settings.REST_FRAMEWORK = block('"DEFAULT_THROTTLE_CLASSES"')["REST_FRAMEWORK"]
    kinds: Any = api_settings.DEFAULT_THROTTLE_CLASSES
    assert kinds == [throttling.AnonRateThrottle, throttling.UserRateThrottle]
    burst = block("class BurstRateThrottle")["BurstRateThrottle"]
    kind: Any = type("Read", (burst,), {"THROTTLE_RATES": api_settings.DEFAULT_THROTTLE_RATES})
    assert (kind().num_requests, kind().duration) == (60, 60)


def test_decorators() -> None:
    login = block('name="account"')["login"]

    def tried(name: str, address: str) -> Any:
        return login(RequestFactory().post("/", {"username": name}, REMOTE_ADDR=address))

    by_address = [tried(f"name {number}", "198.51.100.1") for number in range(6)]
    assert by_address[:5] == [None] * 5 and by_address[5].status_code == 429
    by_name = [tried("ada", f"198.51.100.{number}") for number in range(10, 31)]
    assert by_name[:20] == [None] * 20 and by_name[20].status_code == 429
    assert login(RequestFactory().get("/", REMOTE_ADDR="198.51.100.1")) is None


def test_a_view_that_answers_in_its_own_way() -> None:
    search = block('mode="shadow"')["search"]
    assert [search(RequestFactory().get("/")).content for _ in range(2)] == [b"all", b"less"]


@pytest.mark.django_db
def test_a_plan_and_a_cost() -> None:
    make_plan("api 10/d", "reports 20/d reports")
    view = type("View", (block("throttle_cost = 5")["ReportView"],), {"post": answer})
    made: Any = view
    assert left(made.as_view()(APIRequestFactory().post("/"))) == {"api": 5, "reports": 15}


@pytest.mark.django_db(transaction=True)
def test_nothing_that_another_test_has_counted(settings: Any) -> None:
    settings.RATELIMITS = block('"MODE": "off"')["RATELIMITS"]
    case = block("class LimitTests")["LimitTests"]
    for _ in range(2):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
        assert (result.testsRun, result.errors, result.failures) == (1, [], [])


def test_time_is_moved_by_who_freezes_it(settings: Any, monkeypatch: Any) -> None:
    monkeypatch.undo()
    view, request = limited(Twice), APIRequestFactory().post("/")
    with freeze_time("2026-11-30 12:00:00") as frozen:
        assert [view(request).status_code for _ in range(3)] == [200, 200, 429]
        frozen.tick(3600)
        assert view(request).status_code == 200


def test_a_rate_of_zero_has_no_wait() -> None:
    class Never(UserRateThrottle):
        rate = "0/day"

    response = limited(Never)(APIRequestFactory().post("/"))
    assert (response.status_code, response.headers.get("Retry-After")) == (429, None)
    assert response.data["retryable"] is False


def test_two_classes_of_one_scope_with_other_windows_count_apart() -> None:
    class Minute(UserRateThrottle):
        rate = "3/min"

    view, request = limited(Minute, Twice), APIRequestFactory().post("/")
    assert [view(request).status_code for _ in range(3)] == [200, 200, 429]


def test_above_a_view_of_drf_is_a_type_error() -> None:
    @api_view(["GET"])
    def view(request: HttpRequest) -> Response:
        return Response({})

    with pytest.raises(TypeError, match="stand above a view of Django REST framework"):
        ratelimit("1/m", by="user")(view)
    assert callable(ratelimit("1/m", by="ip")(view))


def test_the_tests_of_drf_that_differ_are_those_that_are_named() -> None:
    assert tuple(re.findall(r"^\| `(test_\w+)` \|", TEXT, re.MULTILINE)) == DIFFERENT
    theirs = (ROOT / "tests" / "dropins" / "drf" / "throttling.py").read_text()
    tests = re.findall(r"^    def test_", theirs, re.MULTILINE)
    assert f"Two of {len(tests)} differ" in TEXT


def test_settings_that_are_named_are_there() -> None:
    named = set(re.findall(r'`"([A-Z_]+)"', TEXT))
    assert named - set(DEFAULTS) == set()
    assert len(named) >= 8
