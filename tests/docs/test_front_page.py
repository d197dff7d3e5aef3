"""What the README shows of settings, doors, tenants and functions is what happens."""

from __future__ import annotations

import re
import shlex
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.core import checks
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from rest_framework.decorators import api_view, throttle_classes
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from ratelimits.conf import DEFAULTS
from ratelimits.decorators import throttle_cost
from ratelimits.limiter import peek
from ratelimits.tenants import tenant_of
from ratelimits.throttling import PlanRateThrottle
from tests.commands import run
from tests.docs.pages import text_of
from tests.docs.samples import sample
from tests.doors import is_silent, left, make_plan, statuses
from tests.processes import ROOT

PAGE = "README.md"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still")]


def defined(text: str, dots: str = "...") -> dict[str, Any]:
    """What a sample defines; `dots` is what stands for the bodies that it leaves out."""
    given = (APIView, Response, HttpResponse, PlanRateThrottle)
    doors = (api_view, throttle_classes, throttle_cost)
    names: dict[str, Any] = {each.__name__: each for each in (*given, *doors)}
    exec(compile(text.replace(": ...", f": {dots}"), PAGE, "exec"), names)
    return names


def test_the_settings(settings: Any) -> None:
    told = defined(sample(PAGE, "DEFAULT_THROTTLE_CLASSES"))
    assert told.keys() >= {"INSTALLED_APPS", "CACHES", "RATELIMITS", "MIDDLEWARE"}
    assert told["RATELIMITS"].keys() <= DEFAULTS.keys()
    settings.CACHES, settings.RATELIMITS = told["CACHES"], told["RATELIMITS"]
    settings.MIDDLEWARE = [*told["MIDDLEWARE"], *settings.MIDDLEWARE]
    found = checks.run_checks(tags=["ratelimits"], include_deployment_checks=True)
    assert [message for message in found if not str(message.id).startswith("ratelimits.W03")] == []


def test_the_first_commands() -> None:
    for line in sample(PAGE, "manage.py ratelimits_starter").splitlines():
        assert run(*shlex.split(line, comments=True)[2:]).code == 0


def test_commands_in_production(settings: Any) -> None:
    make_plan()
    settings.DEBUG = True
    for line in sample(PAGE, "manage.py ratelimits_doctor ").splitlines():
        assert run(*shlex.split(line, comments=True)[2:]).code == 0


def test_the_door_of_drf() -> None:
    make_plan("api 20/d", "searches 10/d search")
    views = defined(sample(PAGE, "class SearchView"), "return Response({})")
    search: Any = type("Search", (views["SearchView"],), {"get": lambda *args: Response({})})
    factory = APIRequestFactory()
    assert left(search.as_view()(factory.get("/"))) == {"api": 15, "searches": 5}
    assert left(views["bulk"](factory.post("/", [1, 2, 3], format="json"))) == {"api": 12}


def test_the_door_of_django() -> None:
    make_plan("api 20/d", "exports 10/d export")
    views = defined(sample(PAGE, "def healthz"), "return HttpResponse()")

    def post() -> HttpRequest:
        return RequestFactory().post("/", {"username": "ada"})

    assert left(views["export"](post())) == {"api": 10, "exports": 0}
    assert statuses(lambda: views["login"](post()), 6) == [200] * 5 + [429]
    assert is_silent(views["healthz"](post()))


def test_functions() -> None:
    make_plan("api 200/d")
    told = defined(sample(PAGE, "charge, peek, refund, reset, take"))
    assert told["decision"].allowed and told["decision"].cost == 5
    assert peek("org:acme").outcomes[0].remaining == 200, "since it was reset"


def test_tenants(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: Any = ModuleType("billing.keys")
    keys.tenant_for = {"real": "org:acme"}.get
    for module in (ModuleType("billing"), keys):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    settings.RATELIMITS = defined(sample(PAGE, "api_key("))["RATELIMITS"]

    def tenant(user: Any = None, key: str = "") -> str | None:
        made: Any = RequestFactory().get("/", headers={"X-API-Key": key})
        made.user = user
        return tenant_of(made)

    assert (tenant(key="real"), tenant(key="made up")) == ("org:acme", None)
    assert tenant(SimpleNamespace(organization_id=7, is_authenticated=True)) == "org:7"
    assert tenant(SimpleNamespace(pk=3, is_authenticated=True)) == "user:3"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_oldest_versions_are_those_that_are_asked_for(page: str) -> None:
    project = (ROOT / "pyproject.toml").read_text()
    text = " ".join(text_of(page).split())
    for name, pattern in (
        ("Python", r'requires-python = ">=([\d.]+)"'),
        ("Django", r'"django>=([\d.]+)"'),
        ("Django REST framework", r'"djangorestframework>=([\d.]+)"'),
    ):
        found = re.search(pattern, project)
        assert found is not None and f"{name} {found[1]}" in text
