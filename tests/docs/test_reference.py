"""docs/reference/ names all that there is, with its defaults, and nothing else."""

from __future__ import annotations

import inspect
import re
from ast import literal_eval
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.db.models import NOT_PROVIDED, Field, Model
from django.dispatch import Signal
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

import ratelimits.models
from ratelimits import client, exceptions, limiter, signals, tenants, throttling
from ratelimits.client import headers
from ratelimits.conf import DEFAULTS
from ratelimits.decorators import ratelimit
from ratelimits.limits import Decision
from ratelimits.rates import Rate
from tests.checking import ids
from tests.docs.samples import sample
from tests.docs.tables import named, rows, section, titles
from tests.doors import left, make_plan
from tests.processes import ROOT

SETTINGS = "docs/reference/settings.md"
MODELS = "docs/reference/models.md"
API = "docs/reference/api.md"
STORES = "docs/reference/stores.md"
CHECKS = "docs/reference/checks.md"
# What nobody edits, and nobody needs to know of.
INTERNAL = {"StoreRow"}


def test_every_setting_has_a_section_and_a_place_in_the_table() -> None:
    assert titles(SETTINGS) == list(DEFAULTS)
    linked = re.findall(r"\[([A-Z0-9_]+)\]\(#(\w+)\)", section(SETTINGS, "Settings", "#"))
    assert {name for name, _ in linked} == set(DEFAULTS)
    assert all(name.lower() == anchor for name, anchor in linked)


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_default_of_each_setting_and_what_it_is_for(name: str) -> None:
    default, _, meaning = section(SETTINGS, name).strip().partition("\n")
    assert literal_eval(default.removeprefix("Default: `").removesuffix("`")) == DEFAULTS[name]
    assert len(meaning.split()) > 5


def test_the_settings_that_are_shown_are_right() -> None:
    told: dict[str, Any] = {}
    exec(sample(SETTINGS, '"PROTECT": ["/api/"]'), told)
    assert ids(RATELIMITS={**told["RATELIMITS"], "CACHE": "default", "PROTECT": []}) == []


def the_models() -> list[type[Model]]:
    found = [getattr(ratelimits.models, name) for name in ratelimits.models.__all__]
    return [each for each in found if issubclass(each, Model) and each.__name__ not in INTERNAL]


def test_every_model_has_a_section() -> None:
    names = {model.__name__ for model in the_models()}
    assert {title for title in titles(MODELS) if title not in ("Rates", "Permissions")} == names


@pytest.mark.parametrize("model", the_models(), ids=lambda model: model.__name__)
def test_the_fields_of_each_model_with_their_defaults(model: type[Model]) -> None:
    told = {name.strip("`"): default for name, default, _ in rows(section(MODELS, model.__name__))}
    fields = {field.name: field for field in model._meta.concrete_fields if is_told(field)}
    assert set(told) == set(fields)
    for name, field in fields.items():
        assert told[name] == default_of(field), name


def is_told(field: Field[Any, Any]) -> bool:
    """All that people fill in; and of the history of switches, which nobody does, all there is."""
    is_history = field.model is ratelimits.models.ModeSwitch
    return not field.primary_key and (field.editable or is_history)


def default_of(field: Field[Any, Any]) -> str:
    if callable(field.default) and field.default is not NOT_PROVIDED:
        return "now"
    if field.default is NOT_PROVIDED:
        return "`None`" if field.null else ""
    value = str(field.default) if isinstance(field.default, str) else field.default
    return f"`{value!r}`".replace("'", '"')


def test_permissions() -> None:
    own = {
        f"ratelimits.{codename}"
        for model in the_models()
        for codename, _ in model._meta.permissions
    }
    assert named(section(MODELS, "Permissions")) - {"add", "change", "delete", "view"} == own


def test_rates() -> None:
    cells = [row[0] for row in rows(section(MODELS, "Rates"))]
    for text in [text for cell in cells for text in named(cell)]:
        assert str(Rate.parse(text)) == text
    exec(sample(MODELS, "Rate.parse"), {})


@pytest.mark.django_db
def test_the_rows_that_are_shown() -> None:
    exec(sample(MODELS, 'key="org:acme"'), {})
    acme = ratelimits.models.Tenant.objects.get()
    for limit in [*acme.limits.all(), *ratelimits.models.PlanLimit.objects.all()]:
        limit.full_clean()
    decision = limiter.peek("org:acme", scope="search")
    left = {outcome.name: outcome.remaining for outcome in decision.outcomes}
    assert left == {"requests": 1200, "searches": 5000}


def names_of(module: Any, kind: type) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, kind)]


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("Django REST framework", throttling.__all__),
        ("Resolvers", tenants.__all__),
        ("Functions", limiter.__all__),
        ("Calling others", [*client.__all__, *headers.__all__]),
        (
            "Exceptions",
            [name for name, value in vars(exceptions).items() if isinstance(value, type)],
        ),
        ("Signals", [name for name, value in vars(signals).items() if isinstance(value, Signal)]),
    ],
)
def test_every_public_name(title: str, names: list[str]) -> None:
    told = named(section(API, title))
    missing = [name for name in names if name not in told]
    assert missing == [], f"{API} has to name them under {title}"


def test_what_ratelimit_takes() -> None:
    parameters = inspect.signature(ratelimit).parameters.values()
    (table,) = [
        cells for cells in [rows(section(API, "Decorators"))] if ["`by`"] in [[c[0]] for c in cells]
    ]
    told = {name.strip("`"): default for name, default, *_ in (row for row in table if row[1:2])}
    for parameter in parameters:
        shown = f"`{parameter.default!r}`".replace("'", '"')
        expected = "the tenant's plan" if parameter.name == "rate" else shown
        assert told[parameter.name] == expected


def test_the_decision() -> None:
    told = named("".join(row[0] for row in rows(section(API, "The decision"))))
    # What travels for others of this package.
    inner = {"spread", "occasion", "wait_us"}
    fields = {name for name in (*vars(Decision), *Decision.__dataclass_fields__) if name[0] != "_"}
    assert told == fields - inner


def test_the_arguments_of_signals() -> None:
    """As the module of the signals says them."""
    text = inspect.getsource(signals)
    for name, _, arguments in rows(section(API, "Signals")):
        assert name.strip("`") in text
        for argument in named(arguments) - {"None"}:
            assert argument in text


def test_functions_that_are_shown(db: None) -> None:
    exec(sample(API, "charge, peek, refund, reset, take"), {})


def test_a_cost_and_a_scope_in_drf(db: None) -> None:
    make_plan("api 20/d", "searches 10/d search")
    names: dict[str, Any] = {"APIView": APIView, "PlanRateThrottle": throttling.PlanRateThrottle}
    exec(sample(API, "class SearchView"), names)
    view = type("Search", (names["SearchView"],), {"get": lambda *args: Response({})})
    made: Any = view
    assert left(made.as_view()(APIRequestFactory().get("/"))) == {"api": 15, "searches": 5}


@pytest.mark.usefixtures("still")
def test_receivers(transactional_db: None) -> None:
    counted, told = list[Any](), list[str]()
    receivers = (signals.refused, signals.nearly_used_up)
    before = [list(signal.receivers) for signal in receivers]

    async def tell_sales(text: str) -> None:
        told.append(text)

    statsd = SimpleNamespace(incr=lambda name, tags: counted.append((name, tags)))
    try:
        kept = {"statsd": statsd, "tell_sales": tell_sales}
        exec(sample(API, "@receiver(refused)"), kept)
        make_plan("api 2/d")
        for _ in range(3):
            limiter.take("acme")
    finally:
        for signal, there in zip(receivers, before, strict=True):
            signal.receivers = there
            signal.sender_receivers_cache.clear()
    assert counted == [("refused", ["limit:api"])]
    assert told == ["acme has 0 of 2/d left"]


@pytest.mark.parametrize("text", [sample(STORES, "SentinelClient"), sample(STORES, '["redis://')])
def test_aliases_of_stores(text: str) -> None:
    """Nothing is wrong with them that could be told without a server."""
    told: dict[str, Any] = {"CACHES": dict(settings.CACHES)}
    exec(text, told)
    found = ids(RATELIMITS={"CACHE": "ratelimits"}, CACHES=told["CACHES"])
    assert found == []


def test_every_check() -> None:
    found = set[str]()
    for path in (ROOT / "ratelimits" / "checks").glob("*.py"):
        found |= set(re.findall(r'id="(ratelimits\.[EW]\d+)"', path.read_text()))
    told = [row[0].strip("`") for row in rows(section(CHECKS, "Checks", "#"))]
    assert sorted(told) == sorted(found), f"{CHECKS} has to have each, once"


def test_when_checks_are_made() -> None:
    """Those that wait for a database, or for --deploy, say so."""
    when = {row[0].strip("`"): row[1] for row in rows(section(CHECKS, "Checks", "#"))}
    source = {path.name: path.read_text() for path in (ROOT / "ratelimits/checks").glob("*.py")}
    of_rows = set(re.findall(r'id="(ratelimits\.W\d+)"', source["plans.py"]))
    assert {name for name, said in when.items() if said == "database"} == of_rows
    late = re.findall(r"register\((\w+), .*deploy=True", source["__init__.py"])
    bodies = [text.partition(f"def {name}(")[2] for name in late for text in source.values()]
    ids = [re.search(r'id="(ratelimits\.W\d+)"', body) for body in bodies if body]
    assert {name for name, said in when.items() if said == "`--deploy`"} == {
        found[1] for found in ids if found
    }
