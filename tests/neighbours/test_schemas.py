"""django-tenants: a schema for each customer, as docs/neighbours.md says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.core.checks import WARNING
from django.utils.functional import lazystr
from django_tenants.cache import make_key

from ratelimits.apps import RateLimitsConfig
from ratelimits.stores.database_opening import own_settings
from tests.checking import REDIS, ids, only
from tests.fresh import PATIENT
from tests.neighbours.page import sample
from tests.processes import run_processes
from tests.servers import PostgreSQLServer
from tests.settings import redis_caches

from .schemas import acting

DATABASE = "schemas"
OURS = {
    **PATIENT,
    "STORE_FAILURE": "local",
    "TENANT": "tests.neighbours.schemas.tenants.by_schema",
}
Act = Callable[..., list[Any]]


@pytest.fixture
def act(postgresql_server: PostgreSQLServer) -> Iterator[Act]:
    """Runs functions of the project in processes that have its settings."""
    database = {
        **postgresql_server.settings(),
        "ENGINE": "django_tenants.postgresql_backend",
        "NAME": DATABASE,
    }

    def act(target: Callable[..., Any], count: int = 1) -> list[Any]:
        return run_processes(
            target,
            count,
            settings={"DATABASES": {"default": database}, "RATELIMITS": OURS},
            env={"DJANGO_SETTINGS_MODULE": "tests.neighbours.schemas.settings"},
        )

    with postgresql_server.connect() as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
        yield act
        connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def test_a_project_with_schemas(act: Act) -> None:
    (tables,) = act(acting.prepare)
    assert len(tables) >= 9
    assert set(map(tuple, tables.values())) == {("public",)}

    (told,) = act(acting.call)
    assert {name: told[name] for name in acting.SCHEMAS} == {
        "public": [9],
        "acme": [9, 8],
        "bakery": [9],
    }
    # Who looks at the public site is counted by address.
    assert told["keys"] == [10, 8, 9]
    # By default, the first user of each schema is the same one.
    assert told["users"] == [9, 8]

    ours = "/admin/ratelimits/plan/"
    assert act(acting.administer) == [
        {
            **{f"{name} /admin/": 200 for name in acting.SCHEMAS},
            f"public {ours}": 200,
            f"acme {ours}": 404,
            f"bakery {ours}": 404,
        }
    ]
    assert act(acting.without_public) == [{"known": 1, "unknown": [True, 0]}]
    assert act(acting.statements) == [{"False": 3, "True": 2}]
    assert act(acting.edit_or_obey, 2) == [[10, 20], []]


def test_as_it_is_shown() -> None:
    shown = sample("SHARED_APPS")
    assert shown["SHARED_APPS"][-1] == "ratelimits"
    assert ids(MIDDLEWARE=shown["MIDDLEWARE"]) == []


@pytest.mark.parametrize("alias", ["default", "limits"])
@pytest.mark.parametrize(
    "function",
    [
        make_key,
        "django_tenants.cache.make_key",
        # As a project may have it.
        f"{__name__}.make_key",
        lazystr("django_tenants.cache.make_key"),
        partial(make_key),
    ],
    ids=["function", "path", "path of ours", "lazy", "partial"],
)
def test_keys_by_schema_are_told_of(alias: str, function: Any) -> None:
    """And what is to be pasted helps."""
    url = "redis://127.0.0.1:6379/1"
    caches = {**REDIS, alias: {**redis_caches(url)["default"], "KEY_FUNCTION": function}}
    message = only(CACHES=caches, RATELIMITS={"CACHE": alias})
    assert (message.id, message.level) == ("ratelimits.W014", WARNING)
    rest = str(message.hint).splitlines()[1:]
    pasted: dict[str, Any] = {"CACHES": dict(caches)}
    exec(rest[0], pasted)
    name = rest[1].rpartition(" ")[2].strip('"')
    assert ids(CACHES=pasted["CACHES"], RATELIMITS={"CACHE": name}) == []


def test_other_keys_are_not() -> None:
    for function in (None, "project.keys.make_key", lambda *args: "key", partial(len)):
        caches = {"default": {**REDIS["default"], "KEY_FUNCTION": function}}
        assert "W014" not in ids(CACHES=caches)
    assert ids(RATELIMITS={"CACHE": None}) == ["E003"]


class Ours(RateLimitsConfig):
    """As projects make them, to say how an app is called."""


INSTALLED = {"public": {"APPS": ["ratelimits"]}, "shop": {"APPS": ["orders"]}}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"TENANT_APPS": ["orders", "ratelimits"]}, ["W033"]),
        ({"TENANT_APPS": ["ratelimits.apps.RateLimitsConfig"]}, ["W033"]),
        ({"TENANT_APPS": ["orders", f"{__name__}.Ours"]}, ["W033"]),
        ({"TENANT_APPS": [lazystr("ratelimits")]}, ["W033"]),
        ({"TENANT_APPS": ["orders", "ratelimits_of_ours"]}, []),
        ({"SHARED_APPS": ["ratelimits"], "TENANT_APPS": ["orders"]}, []),
        ({"TENANT_TYPES": INSTALLED}, []),
        ({"TENANT_TYPES": INSTALLED, "PUBLIC_SCHEMA_NAME": "shop"}, ["W033"]),
        ({"TENANT_APPS": ["ratelimits"], "RATELIMITS": {"MODE": "off"}}, []),
    ],
)
def test_plans_of_each_customer_are_told_of(settings: Any, expected: list[str]) -> None:
    assert ids(**settings) == expected


@pytest.mark.parametrize("value", [None, 7, "ratelimits", [7], [("ratelimits", "Limits")], {}])
def test_settings_that_only_have_the_same_names(value: Any) -> None:
    """Whoever has no such schemas may call anything like that: no command should fail for it."""
    for types in (value, {"shop": value}, {"shop": {"APPS": value}}):
        assert ids(TENANT_APPS=value, TENANT_TYPES=types) == []


def test_connections_of_an_engine_of_another_app() -> None:
    """It is known for what it is made from: the counts don't wait for a server that is away."""
    settings = {"ENGINE": "django_tenants.postgresql_backend", "OPTIONS": {"pool": True}}
    assert own_settings(settings, 0.05)["OPTIONS"] == {"connect_timeout": 2}
