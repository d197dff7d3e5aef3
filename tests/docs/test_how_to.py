"""The recipes of docs/how-to.md do what the page says."""

from __future__ import annotations

import shlex
import sys
import unittest
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import AsyncClient, Client, RequestFactory
from django.urls import path as url
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory, force_authenticate
from rest_framework.views import APIView

from ratelimits.conf import DEFAULTS
from ratelimits.limiter import peek
from ratelimits.models import Plan, StoreRow, Tenant
from ratelimits.signals import would_refuse
from ratelimits.tenants import tenant_of
from ratelimits.throttling import PlanRateThrottle
from tests.commands import run
from tests.docs.pages import anchors, text_of
from tests.docs.samples import commands, modules, sample
from tests.doors import BROWSER, is_silent, left, make_plan, per_address, problem, statuses
from tests.processes import ROOT

PAGE = "docs/how-to.md"

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__), pytest.mark.usefixtures("still")]


def run_sample(text: str, **given: Any) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "docs.how_to", **given}
    exec(compile(text, PAGE, "exec"), names)
    return names


urlpatterns: list[Any] = []
SERVICE = ["ratelimits.middleware.RateLimitMiddleware"]
# As a project's own module has it.
real_address = run_sample(modules(PAGE)["middleware"])["real_address"]


def nothing(view: Any, request: Any) -> Response:
    return Response({})


@pytest.fixture
def at(settings: Any) -> Any:
    """Gives a client for a view."""

    def serve(view: Any, route: str = "there", **options: Any) -> Client:
        module = ModuleType("tests.docs.urls")
        vars(module)["urlpatterns"] = [url(route, view)]
        settings.ROOT_URLCONF = module
        return Client(**options)

    return serve


def test_a_login_form(at: Any, settings: Any, tmp_path: Path) -> None:
    put_templates(tmp_path, settings, registration__login="")
    client = at(run_sample(sample(PAGE, "class Login(LoginView)"))["Login"].as_view(), "login")

    def tried(name: str, address: str) -> int:
        data = {"username": name, "password": "wrong"}
        return int(client.post("/login", data, REMOTE_ADDR=address).status_code)

    assert [tried(f"name {number}", "198.51.100.1") for number in range(6)] == [200] * 5 + [429]
    assert [tried("ada", f"198.51.100.{number + 10}") for number in range(21)] == [200] * 20 + [429]
    assert client.get("/login", REMOTE_ADDR="198.51.100.1").status_code == 200


def test_by_address_before_all_else(at: Any, settings: Any) -> None:
    per_address("2/h")
    shown = run_sample(sample(PAGE, "SecurityMiddleware"))["MIDDLEWARE"]
    settings.MIDDLEWARE = [*shown, *settings.MIDDLEWARE]
    views = run_sample(sample(PAGE, "def healthz"))
    assert statuses(lambda: at(views["prices"]).get("/there"), 3) == [200, 200, 429]
    answer = at(views["healthz"]).get("/there")
    assert answer.content == b"well" and is_silent(answer)


def test_by_address_in_code(at: Any) -> None:
    client = at(run_sample(sample(PAGE, "def healthz"))["prices"])
    answer = client.get("/there")
    assert answer.content == b"12.50" and left(answer) == {"prices": 99}


class Keys:
    """A table of keys, of which there is one."""

    digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"

    def filter(self, digest: str) -> Keys:
        self.found = digest == self.digest
        return self

    def first(self) -> Any:
        return SimpleNamespace(organization_id=4) if self.found else None


def test_tenants(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    models: Any = ModuleType("billing.models")
    models.Key = SimpleNamespace(objects=Keys())
    keys: Any = ModuleType("billing.keys")
    billing: Any = ModuleType("billing")
    for module in (billing, models, keys):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    vars(keys).update(run_sample(sample(PAGE, "def tenant_for"), __package__="billing"))
    settings.RATELIMITS = run_sample(sample(PAGE, 'prefix="org:"'))["RATELIMITS"]

    def tenant(user: Any = None, **headers: str) -> str | None:
        made: Any = RequestFactory().get("/", headers=headers)
        made.user = user
        return tenant_of(made)

    assert tenant(**{"X-API-Key": "secret"}) == "org:4"
    assert tenant(**{"X-API-Key": "made up"}) is None
    assert tenant(SimpleNamespace(organization_id=7, is_authenticated=True)) == "org:7"
    assert tenant(User(pk=3)) == "user:3"


def test_a_proxy(at: Any, settings: Any) -> None:
    settings.RATELIMITS = run_sample(sample(PAGE, "TRUSTED_PROXIES"))["RATELIMITS"]
    client = at(run_sample(sample(PAGE, "def healthz"))["prices"])
    found = [
        left(client.get("/there", headers={"X-Forwarded-For": entries}))["prices"]
        for entries in ("made-up, 198.51.100.1", "198.51.100.9, 198.51.100.1", "198.51.100.2")
    ]
    assert found == [99, 98, 99]


def test_a_proxy_with_a_field_of_its_own(at: Any, settings: Any) -> None:
    per_address("2/h")
    settings.MIDDLEWARE = [f"{__name__}.real_address", *SERVICE]
    client = at(lambda request: HttpResponse("all"))

    def ask(address: str) -> int:
        return int(client.get("/there", headers={"CF-Connecting-IP": address}).status_code)

    asked = [ask(address) for address in ("198.51.100.1",) * 3 + ("198.51.100.2",)]
    assert asked == [200, 200, 429, 200]


def test_staff(settings: Any) -> None:
    make_plan("api 1/d")
    Plan.objects.create(slug="ours", name="Ours")
    Tenant.objects.create(key="user:7", plan=Plan.objects.get(slug="ours"))
    shown = run_sample(sample(PAGE, '"EXEMPT"'))["RATELIMITS"]
    assert shown == {"EXEMPT": "shop.staff.is_spared"}
    settings.RATELIMITS = {"EXEMPT": run_sample(modules(PAGE)["staff"])["is_spared"]}
    view: Any = type("View", (APIView,), {"throttle_classes": [PlanRateThrottle], "get": nothing})

    def ask(user: Any) -> list[int]:
        def one() -> Any:
            request = APIRequestFactory().get("/")
            force_authenticate(request, user)
            return view.as_view()(request)

        return statuses(one, 2)

    assert ask(User(pk=3, is_staff=True)) == [200, 200]
    assert ask(User(pk=4)) == [200, 429]
    assert ask(None) == [200, 429]
    # One of ours, on a plan that has no limits.
    assert ask(User(pk=7)) == [200, 200]


def test_methods_and_user_agents(at: Any) -> None:
    client = at(run_sample(sample(PAGE, 'name="edits"'))["page"])
    answers = [client.get("/there", headers={"User-Agent": name}) for name in ("a", "a", "b")]
    assert [left(each) for each in answers] == [{"agents": 59}, {"agents": 58}, {"agents": 59}]
    assert left(client.post("/there", headers={"User-Agent": "c"})) == {"edits": 29, "agents": 59}


def test_a_scope_for_some_methods() -> None:
    make_plan("api 20/d", "writes 5/d write")
    view, factory = run_sample(sample(PAGE, "def throttle_scope"))["OrdersView"], RequestFactory()
    assert left(view.as_view()(factory.get("/"))) == {"api": 19}
    assert left(view.as_view()(factory.post("/"))) == {"api": 18, "writes": 4}


def test_costs_in_drf() -> None:
    make_plan("api 20/d")
    views, factory = run_sample(sample(PAGE, "class SearchView")), APIRequestFactory()
    assert left(views["SearchView"].as_view()(factory.get("/"))) == {"api": 15}
    answer = views["bulk"](factory.post("/", [1, 2, 3], format="json"))
    assert answer.data == {"taken": 3} and left(answer) == {"api": 12}


def test_costs_afterwards(at: Any) -> None:
    make_plan("api 20/d")
    client = at(run_sample(sample(PAGE, "def translate"))["translate"])
    for words, there in (("", 20), ("one", 19), ("one two three", 16)):
        client.post("/there", words, content_type="text/plain")
        assert peek(RequestFactory().get("/")).outcomes[0].remaining == there


def test_a_scope(at: Any, tmp_path: Any) -> None:
    (tmp_path / "plans.toml").write_text(sample(PAGE, 'scope = "export"'))
    assert run("ratelimits_apply", str(tmp_path / "plans.toml")).code == 0
    client = at(run_sample(sample(PAGE, '@ratelimit(scope="export")'))["export"])
    assert left(client.get("/there")) == {"requests": 59, "exports": 4}
    assert statuses(lambda: client.get("/there"), 5) == [200] * 4 + [429]


def test_shadow(at: Any) -> None:
    client, told = at(run_sample(sample(PAGE, "def reports"))["reports"]), list[str]()

    def note(outcomes: Any, **kwargs: Any) -> None:
        told.extend(outcome.name for outcome in outcomes)

    would_refuse.connect(note)
    try:
        assert statuses(lambda: client.get("/there"), 31) == [200] * 31
    finally:
        would_refuse.disconnect(note)
    assert told == ["reports"]


def test_inside_of_a_view(at: Any, settings: Any) -> None:
    make_plan("mail 5/d mail")
    settings.MIDDLEWARE = ["ratelimits.middleware.RateLimitMiddleware"]
    client = at(run_sample(sample(PAGE, "raise RateLimited"))["send"])
    assert client.get("/there").json() == {"left": 2}
    assert problem(client.get("/there"))["cost"] == 3


@pytest.fixture
def once_a_day(at: Any, settings: Any) -> Client:
    """A client whose next request is refused."""
    make_plan("api 1/d")
    settings.MIDDLEWARE = ["ratelimits.middleware.RateLimitMiddleware"]
    settings.RATELIMITS = {"PROTECT": ["/legacy/"]}
    client: Client = at(lambda request: HttpResponse("all"), "legacy/orders")
    assert client.get("/legacy/orders").content == b"all"
    return client


def put_templates(directory: Path, settings: Any, **texts: str) -> None:
    for name, text in texts.items():
        path = directory / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".html").write_text(text)
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [directory]}]


def test_a_page_of_ones_own(once_a_day: Client, settings: Any, tmp_path: Path) -> None:
    base = "<main>{% block content %}{% endblock %}</main>"
    page = sample(PAGE, "{% extends")
    put_templates(tmp_path, settings, base=base, ratelimits__429=page)
    answer = once_a_day.get("/legacy/orders", headers={"Accept": BROWSER})
    assert answer.status_code == 429
    for text in ("<main>", "Slow down", "Limit is 1 request per day", "You can go on in 24 hours"):
        assert text in answer.text


def test_an_answer_of_ones_own(once_a_day: Client, settings: Any) -> None:
    refused = run_sample(modules(PAGE)["limits"])["refused"]
    settings.RATELIMITS = {**settings.RATELIMITS, "RESPONSE": refused}
    answer = once_a_day.get("/legacy/orders")
    assert answer.json() == {"error": "slow_down"}
    assert answer.status_code == 429 and "no-store" in answer.headers["Cache-Control"]
    assert refused(RequestFactory().get("/"), None) is None


async def test_async_views(settings: Any) -> None:
    module = ModuleType("tests.docs.urls")
    view = run_sample(sample(PAGE, "async def quotes"))["quotes"]
    vars(module)["urlpatterns"] = [url("there", view)]
    settings.ROOT_URLCONF = module
    answer = await AsyncClient().get("/there")
    assert answer.json() == {"allowed": True} and left(answer) == {"quotes": 9}


def test_several_databases() -> None:
    router = run_sample(modules(PAGE)["routers"])["LimitsRouter"]()
    found = [router.db_for_write(model) for model in (StoreRow, Plan, Tenant, User)]
    assert found == ["counts", "plans", "plans", None]
    assert router.db_for_read(StoreRow) == "counts"


def test_tests(settings: Any, tmp_path: Path) -> None:
    put_templates(tmp_path, settings, registration__login="")
    settings.RATELIMITS = run_sample(sample(PAGE, "# settings of the tests"))["RATELIMITS"]
    assert settings.RATELIMITS.keys() <= DEFAULTS.keys()
    module = ModuleType("tests.docs.urls")
    login = run_sample(sample(PAGE, "class Login(LoginView)"))["Login"]
    vars(module)["urlpatterns"] = [url("login", login.as_view())]
    settings.ROOT_URLCONF = module
    case = run_sample(sample(PAGE, "class LoginTests"))["LoginTests"]
    for _ in range(2):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
        assert (result.testsRun, result.errors, result.failures) == (1, [], [])


AT_NIGHT = [command for command in commands(PAGE) if "migrate" not in command]


@pytest.mark.parametrize("command", AT_NIGHT)
def test_at_night(command: str) -> None:
    make_plan()
    assert run(*shlex.split(command)[2:]).code == 0


@pytest.mark.django_db(transaction=True)
def test_taking_it_out() -> None:
    (command,) = set(commands(PAGE)) - set(AT_NIGHT)

    def tables() -> list[str]:
        names = connection.introspection.table_names()
        return [name for name in names if name.startswith("ratelimits_")]

    make_plan()
    assert tables()
    try:
        assert run(*shlex.split(command)[2:], "-v", "0").code == 0
        assert not tables()
    finally:
        run("migrate", "-v", "0")
    assert tables()


def test_the_list_at_its_beginning_is_complete() -> None:
    listed = [line for line in text_of(PAGE).splitlines() if line.startswith("- [")]
    linked = {line.partition("](#")[2].removesuffix(")") for line in listed}
    assert linked == anchors(ROOT / PAGE) - {"how-to"}
