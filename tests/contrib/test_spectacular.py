"""What the schema of drf-spectacular says of limits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.test import RequestFactory
from django.urls import path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.validation import validate_schema
from rest_framework.request import Request

from ratelimits.decorators import ratelimit
from ratelimits.limits import Decision, Limit, Outcome
from ratelimits.publishing.headers import headers_of
from ratelimits.publishing.problems import problem_of
from ratelimits.rates import Rate
from tests.contrib import limited_api
from tests.contrib.limited_api import Search
from tests.docs.samples import sample
from tests.pseudo import pseudo, unmarked
from tests.settings import MIDDLEWARE

SNAPSHOT = Path(__file__).parent / "limited_api.json"
HOOK = "ratelimits.contrib.spectacular.document_rate_limits"
OURS = "ratelimits.middleware.RateLimitMiddleware"
UNLIMITED = ["/api/open", "/api/exempt", "/api/others", "/api/dropped/unlimited"]


@pytest.fixture(autouse=True)
def _patched() -> Iterator[None]:
    spectacular_settings.apply_patches({"POSTPROCESSING_HOOKS": [HOOK]})
    yield
    spectacular_settings.clear_patches()


def schema(**patches: Any) -> dict[str, Any]:
    """The schema of the views, which is seen to be a valid one."""
    hooks = patches.pop("hooks", [HOOK])
    patterns = patches.pop("patterns", limited_api.urlpatterns)
    spectacular_settings.apply_patches({"POSTPROCESSING_HOOKS": hooks, **patches})
    generator = SchemaGenerator(patterns=patterns)
    made: dict[str, Any] = json.loads(json.dumps(generator.get_schema(public=True)))
    validate_schema(made)
    for reference in references(made):
        found: Any = made
        for name in reference.removeprefix("#/").split("/"):
            found = found[name]
    return made


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (part[name] for name in part if name == "$ref")
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from references(each)


def doors(made: dict[str, Any], path: str, method: str = "get") -> Any:
    found = made["paths"][path][method].get("x-ratelimit")
    return None if found is None else [(each["scope"], each["cost"]) for each in found]


def test_which_operations_are_limited() -> None:
    made = schema()
    assert doors(made, "/api/search") == [("search", 1)]
    assert doors(made, "/api/search", "post") == [("search", 5)]
    assert doors(made, "/api/search", "put") == [("search", None)]
    assert doors(made, "/api/dropped") == [("user", 1)]
    assert doors(made, "/api/dropped/scoped") == [("uploads", 1)]
    assert doors(made, "/api/decorated", "post") == [("login", 2), ("search", 1)]
    assert doors(made, "/api/function", "post") == [("function", None)]
    assert doors(made, "/api/groups/") == [("", 3)]
    assert doors(made, "/api/groups/{id}/", "delete") == [("", 1)]
    assert doors(made, "/api/groups/{id}/export/") == [("export", 1)]
    for path_ in (*UNLIMITED, "/api/dropped/free", "/api/decorated", "/api/groups/{id}/free/"):
        assert doors(made, path_) is None
    assert doors(made, "/api/decorated", "put") is None


@pytest.mark.parametrize("form", ["as_view", "class", "function"])
def test_limits_above_a_view(form: str) -> None:
    limit = ratelimit("5/m", by="ip", scope="guesses", cost=2)
    page: Any = type("Page", (limited_api.Open,), {})
    views = {
        "as_view": lambda: limit(page.as_view()),
        "class": lambda: limit(page).as_view(),
        "function": lambda: limit(limited_api.function),
    }
    made = schema(patterns=[path("api/above", views[form]())])
    method = "post" if form == "function" else "get"
    own = [("function", None)] if form == "function" else []
    assert sorted(doors(made, "/api/above", method)) == sorted([("guesses", 2), *own])


def test_what_is_not_limited_stays_untouched() -> None:
    before, after = schema(hooks=[]), schema()
    for path_ in UNLIMITED:
        assert after["paths"][path_] == before["paths"][path_]
    nothing = [path("api/open", limited_api.Open.as_view())]
    assert schema(patterns=nothing) == schema(patterns=nothing, hooks=[])


def test_what_a_project_says_itself_stays() -> None:
    answers = schema()["paths"]["/api/own"]["get"]["responses"]
    assert answers["429"]["content"]["application/json"]
    assert answers["503"] == {"$ref": "#/components/responses/ReducedCapacity"}


def test_the_prefixes_of_the_middleware(settings: Any) -> None:
    settings.RATELIMITS = {"PROTECT": ["/api/open", "/api/exempt", "/api/search"]}
    assert doors(schema(), "/api/open") is None
    settings.MIDDLEWARE = [OURS, *MIDDLEWARE]
    made = schema()
    assert doors(made, "/api/open") == [("", 1)]
    assert doors(made, "/api/exempt") is None
    assert doors(made, "/api/search") == [("search", 1)]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (["ratelimit"], {"RateLimit", "RateLimit-Policy"}),
        (
            ["ratelimit-legacy", "x-ratelimit"],
            {
                f"{x}RateLimit-{part}"
                for x in ("", "X-")
                for part in ("Limit", "Remaining", "Reset")
            },
        ),
        ("ratelimit", {"RateLimit", "RateLimit-Policy"}),
        ([], set()),
    ],
)
def test_headers_are_those_of_the_setting(wanted: Any, names: set[str], settings: Any) -> None:
    settings.RATELIMITS = {"HEADERS": wanted}
    made = schema()
    assert set(made["components"]["headers"]) == {*names, "Retry-After"}
    refused = made["components"]["responses"]["RateLimited"]
    assert set(refused["headers"]) == {*names, "Retry-After"}
    passed = made["paths"]["/api/search"]["get"]["responses"]["200"]
    assert set(passed.get("headers", {})) == names
    outcome = Outcome(Limit("api", Rate(5, 60)), False, 0, 1, 1, 1)
    assert set(headers_of(Decision((outcome,)))) == {*names, "Retry-After"}


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_problems_are_as_the_schema_says(version: str) -> None:
    made = schema(OAS_VERSION=version)
    described = made["components"]["schemas"]["RateLimitProblem"]
    if version == "3.0.3":
        # Which only this version says so.
        assert described["properties"]["retry_after"].pop("nullable") is True
        described["properties"]["retry_after"]["type"] = ["integer", "null"]
    everyone = Limit("all", Rate(5, 60), per="everyone")
    for outcome in (
        Outcome(Limit("api", Rate(5, 60)), False, 0, 1, 1, 1),
        Outcome(Limit("api", Rate(0, 60)), False, 0, 1, None, 1),
        Outcome(everyone, False, 0, 1, 1, 1),
    ):
        jsonschema.validate(problem_of(Decision((outcome,))), described)
    jsonschema.validate(problem_of(Decision((), unavailable=True)), described)


@pytest.mark.parametrize(
    ("patches", "path_"),
    [
        ({"SCHEMA_PATH_PREFIX": "/api", "SCHEMA_PATH_PREFIX_TRIM": True}, "/search"),
        ({"SCHEMA_PATH_PREFIX_INSERT": "/v1"}, "/v1/api/search"),
        ({"CAMELIZE_NAMES": True}, "/api/search"),
    ],
)
def test_paths_that_settings_alter(patches: dict[str, Any], path_: str) -> None:
    made = schema(**patches)
    assert doors(made, path_) == [("search", 1)]
    prefix = path_.removesuffix("search")
    assert doors(made, f"{prefix}groups/{{id}}/export/") == [("export", 1)]
    assert doors(made, f"{prefix}open") is None


def test_a_project_without_permission_to_see_them() -> None:
    """Only what the caller may use is in the schema."""

    class Hidden(Search):
        permission_classes = []

        def check_permissions(self, request: Any) -> None:
            self.permission_denied(request)

    patterns = [path("api/{x}", Hidden.as_view()), path("api/open", limited_api.Open.as_view())]
    generator = SchemaGenerator(patterns=patterns)
    made = generator.get_schema(request=Request(RequestFactory().get("/")), public=False)
    assert set(made["paths"]) == {"/api/open"}
    assert "x-ratelimit" not in made["paths"]["/api/open"]["get"]


def test_descriptions_are_kept_and_can_be_translated() -> None:
    made = schema()
    operation = made["paths"]["/api/search"]["get"]
    assert operation["description"] == (
        "Reads a text.\n\nRate limited: a request takes 1 unit. "
        "Limits of the scope “search” count, too."
    )
    dropped = made["paths"]["/api/dropped"]["get"]["description"]
    assert dropped == (
        "Reads a text.\n\nRate limited: a request takes 1 unit. It is limited by “user”."
    )
    with pseudo():
        made = schema()
    for path_, method in (("/api/search", "post"), ("/api/dropped", "get")):
        described = made["paths"][path_][method]["description"]
        assert unmarked(described.replace("Reads a text.", "")) == []


def test_what_the_documentation_says() -> None:
    told: dict[str, Any] = {}
    exec(sample("docs/openapi.md", "POSTPROCESSING_HOOKS"), told)
    made = schema(hooks=told["SPECTACULAR_SETTINGS"]["POSTPROCESSING_HOOKS"])
    assert (
        json.loads(sample("docs/openapi.md", '[{"scope"'))
        == made["paths"]["/api/search"]["post"]["x-ratelimit"]
    )
    assert "#/components/schemas/RateLimitProblem" in set(references(made))


def test_the_snapshot(tmp_path: Path) -> None:
    """What others generate clients from changes only on purpose."""
    made = schema()
    parts = made["components"]
    ours = {
        "headers": parts["headers"],
        "responses": parts["responses"],
        "problem": parts["schemas"]["RateLimitProblem"],
        "operation": {
            name: made["paths"]["/api/search"]["get"][name]
            for name in ("description", "responses", "x-ratelimit")
        },
    }
    now = tmp_path / SNAPSHOT.name
    now.write_text(json.dumps(ours, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    assert json.loads(SNAPSHOT.read_text()) == ours, f"if it is meant so: cp {now} {SNAPSHOT}"
