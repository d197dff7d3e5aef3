from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from typing import Any

import pytest
from django.core.checks import ERROR, WARNING
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.test import override_settings
from django.utils.functional import lazystr

from ratelimits.checks.plans import check_plans
from ratelimits.checks.values import RULES
from ratelimits.conf import DEFAULTS
from ratelimits.models import Plan, PlanLimit
from tests.checking import OURS, REDIS, ids, messages, only
from tests.processes import ROOT
from tests.settings import MIDDLEWARE

UPDATE = "django.middleware.cache.UpdateCacheMiddleware"
FETCH = "django.middleware.cache.FetchFromCacheMiddleware"
CONDITIONAL = "django.middleware.http.ConditionalGetMiddleware"
GZIP = "django.middleware.gzip.GZipMiddleware"
AUTH = "django.contrib.auth.middleware.AuthenticationMiddleware"
CORS = "corsheaders.middleware.CorsMiddleware"

not_callable = "some text"


class OwnUpdateCache:
    """Replaced by a class made from Django's in the test that needs it."""


def key_of(request: Any) -> str:
    return "acme"


async def key_of_async(request: Any) -> str:
    return "acme"


class AsyncCallable:
    async def __call__(self, *args: Any) -> bool:
        return False


async_callable = AsyncCallable()


def here(name: str) -> str:
    return f"{__name__}.{name}"


def test_a_good_project_has_nothing_to_say() -> None:
    assert messages(deploy=True, CACHES={**REDIS, "limits": LIMITS}, RATELIMITS=GOOD) == []


LIMITS = {**REDIS["default"], "LOCATION": "redis://127.0.0.1:6379/1"}
GOOD: dict[str, Any] = {
    "MODE": "shadow",
    "CACHE": "limits",
    "TENANT": [here("key_of"), here("key_of_async"), "ratelimits.tenants.by_user"],
    "PLAN": here("key_of"),
    "TENANT_LABEL": key_of,
    "EXEMPT": here("key_of"),
    "PROTECT": ["/api/", "/v2"],
    "TRUSTED_PROXIES": 2,
    "IPV6_PREFIX": 56,
    "HEADERS": ("ratelimit", "ratelimit-legacy", "x-ratelimit"),
    "PROBLEM_TYPES": {
        "quota-exceeded": "https://example.com/problems#quota",
        "temporary-reduced-capacity": lazystr("/problems/busy"),
    },
    "RESPONSE": here("key_of"),
    "KEY_SECRET": b"secret",
    "STORE_TIMEOUT": 0.1,
    "LOCAL_REFUSALS": 0,
    "WORKERS": 4,
    "STORE_FAILURE": "deny",
    "CATALOG_TTL": 60.5,
    "CLOCK": "store",
}


def test_every_setting_has_a_rule() -> None:
    assert RULES.keys() == DEFAULTS.keys()


def test_every_default_is_good() -> None:
    assert messages(RATELIMITS=DEFAULTS) == []


@pytest.mark.parametrize("name", sorted(GOOD))
def test_every_good_value_is_good_alone(name: str) -> None:
    middleware = [OURS, *MIDDLEWARE]
    caches = {**REDIS, "limits": LIMITS}
    assert messages(CACHES=caches, MIDDLEWARE=middleware, RATELIMITS={name: GOOD[name]}) == []


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("MODE", "enforced", '"MODE": "enforce" (or "shadow", "off")'),
        ("MODE", "Shadow", '"MODE": "shadow"'),
        ("MODE", None, '"MODE": "enforce"'),
        ("MODE", ["off"], '"MODE": "enforce"'),
        ("STORE_FAILURE", "open", '"STORE_FAILURE": "local"'),
        ("STORE_FAILURE", "denied", '"STORE_FAILURE": "deny"'),
        ("CLOCK", "proces", '"CLOCK": "process"'),
        ("CACHE", None, '"CACHE": "default"'),
        ("CACHE", {"BACKEND": "x"}, '"CACHE": "default"'),
        ("TENANT", None, '"TENANT": "project.limits.tenant"'),
        ("TENANT", ["ratelimits.tenants.by_user", 7], "project.limits.tenant"),
        ("PLAN", {"free": 1}, '"PLAN": "project.limits.plan"'),
        ("EXEMPT", True, '"EXEMPT": "project.limits.exempt"'),
        ("PROTECT", "/api/", '"PROTECT": ["/api/"]'),
        ("PROTECT", ["api/"], '"PROTECT": ["/api/"]'),
        ("PROTECT", [""], '"PROTECT": ["/"]'),
        ("PROTECT", [None], '"PROTECT": ["/api/"]'),
        ("TRUSTED_PROXIES", -1, '"TRUSTED_PROXIES": 0'),
        ("TRUSTED_PROXIES", True, '"TRUSTED_PROXIES": 0'),
        ("TRUSTED_PROXIES", "1", '"TRUSTED_PROXIES": 0'),
        ("TRUSTED_PROXIES", 1.0, '"TRUSTED_PROXIES": 0'),
        ("TRUSTED_PROXIES", None, '"TRUSTED_PROXIES": 0'),
        ("TRUSTED_PROXIES", ["10.0.0.1"], '"TRUSTED_PROXIES": 0'),
        ("IPV6_PREFIX", 0, '"IPV6_PREFIX": 64'),
        ("IPV6_PREFIX", 129, '"IPV6_PREFIX": 64'),
        ("IPV6_PREFIX", "/64", '"IPV6_PREFIX": 64'),
        ("HEADERS", "ratelimit", '"HEADERS": ["ratelimit", "ratelimit-legacy"]'),
        ("HEADERS", ["rate-limit"], 'Did you mean "ratelimit"?'),
        ("HEADERS", ["X-RateLimit"], 'Did you mean "x-ratelimit"?'),
        ("HEADERS", [7], '"HEADERS": ["ratelimit", "ratelimit-legacy"]'),
        ("PROBLEM_TYPES", "https://example.com/", '"PROBLEM_TYPES": {"quota-exceeded": "https:'),
        ("PROBLEM_TYPES", {"quota_exceeded": "/q"}, 'Did you mean "quota-exceeded"?'),
        ("PROBLEM_TYPES", {"404": "/q"}, '"PROBLEM_TYPES": {"quota-exceeded": "https:'),
        ("PROBLEM_TYPES", {"quota-exceeded": "no uri"}, '{"quota-exceeded": "https:'),
        ("PROBLEM_TYPES", {"quota-exceeded": "https://a b"}, '{"quota-exceeded": "https:'),
        ("PROBLEM_TYPES", {"quota-exceeded": None}, '{"quota-exceeded": "https:'),
        ("KEY_SECRET", "", '"KEY_SECRET": None'),
        ("KEY_SECRET", 7, '"KEY_SECRET": None'),
        ("WORKERS", 0, '"WORKERS": 4'),
        ("WORKERS", True, '"WORKERS": 4'),
        ("WORKERS", "4", '"WORKERS": 4'),
        ("LOCAL_REFUSALS", -1, '"LOCAL_REFUSALS": 0.25'),
        ("LOCAL_REFUSALS", 61, '"LOCAL_REFUSALS": 0.25'),
        ("STORE_TIMEOUT", 0, '"STORE_TIMEOUT": 0.05'),
        ("STORE_TIMEOUT", 50, '"STORE_TIMEOUT": 0.05'),
        ("STORE_TIMEOUT", float("nan"), '"STORE_TIMEOUT": 0.05'),
        ("STORE_TIMEOUT", None, '"STORE_TIMEOUT": 0.05'),
        ("STORE_TIMEOUT", True, '"STORE_TIMEOUT": 0.05'),
        ("CATALOG_TTL", 0, '"CATALOG_TTL": 30'),
        ("CATALOG_TTL", float("inf"), '"CATALOG_TTL": 30'),
        ("CATALOG_TTL", "30", '"CATALOG_TTL": 30'),
    ],
)
def test_wrong_values(name: str, value: Any, hint: str) -> None:
    message = only(RATELIMITS={name: value})
    assert (message.id, message.level) == ("ratelimits.E003", ERROR)
    assert message.msg.startswith(f'RATELIMITS["{name}"]')
    assert hint in str(message.hint)


def test_a_secret_of_the_wrong_kind_is_not_shown() -> None:
    message = only(RATELIMITS={"KEY_SECRET": ["s3cr3t"]})
    assert message.id == "ratelimits.E003"
    assert "s3cr3t" not in str(message)


def test_long_values_are_cut() -> None:
    assert len(only(RATELIMITS={"MODE": "x" * 5000}).msg) < 200


@pytest.mark.parametrize("value", [[("MODE", "off")], "MODE", 7, True])
def test_not_a_dictionary(value: Any) -> None:
    message = only(RATELIMITS=value, deploy=True)
    assert message.id == "ratelimits.E001"
    assert "RATELIMITS = {" in str(message.hint)


def test_none_is_like_nothing_set() -> None:
    assert messages(RATELIMITS=None) == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("MODES", 'Did you mean "MODE"?'),
        ("mode", 'Did you mean "MODE"?'),
        ("NUM_PROXIES", 'Did you mean "TRUSTED_PROXIES"?'),
        ("KEY_SECERT", 'Did you mean "KEY_SECRET"?'),
        ("zzz", '"CACHE", "CATALOG_TTL", "CLOCK"'),
        (7, '"CACHE", "CATALOG_TTL", "CLOCK"'),
        (None, '"CACHE", "CATALOG_TTL", "CLOCK"'),
    ],
)
def test_unknown_settings(name: Any, hint: str) -> None:
    message = only(RATELIMITS={name: "s3cr3t"})
    assert message.id == "ratelimits.E002"
    assert str(name) in message.msg
    assert hint in str(message.hint)
    assert "s3cr3t" not in str(message)


@pytest.mark.parametrize("name", ["TENANT", "PLAN", "TENANT_LABEL", "EXEMPT", "RESPONSE"])
@pytest.mark.parametrize(
    ("path", "id", "says"),
    [
        ("nowhere.resolver", "E004", "No module named 'nowhere'"),
        ("key_of", "E004", "key_of doesn't look like a module path"),
        ("", "E004", "doesn't look like a module path"),
        (here("key_off"), "E004", 'does not define a "key_off"'),
        ("tests.broken.resolver", "E004", "ZeroDivisionError"),
        (here("not_callable"), "E005", '"some text"'),
    ],
)
def test_wrong_paths(
    name: str, path: str, id: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    message = only(RATELIMITS={name: path})
    assert message.id == f"ratelimits.{id}"
    assert message.msg.startswith(f'RATELIMITS["{name}"]: "{path}"')
    assert says in message.msg


class Broken:
    """An importer of one module, which fails in its own way."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "tests.broken":
            raise ZeroDivisionError


def test_a_path_with_a_typo_gets_a_suggestion() -> None:
    message = only(RATELIMITS={"TENANT": ["ratelimits.tenants.by_usr"]})
    assert message.hint == 'Did you mean "ratelimits.tenants.by_user"?'


@pytest.mark.parametrize("name", ["PLAN", "TENANT_LABEL", "EXEMPT", "RESPONSE"])
@pytest.mark.parametrize("value", [key_of_async, here("key_of_async"), here("async_callable")])
def test_async_where_nothing_awaits(name: str, value: Any) -> None:
    assert ids(RATELIMITS={name: value}) == ["E006"]


def test_resolvers_may_be_async() -> None:
    assert ids(RATELIMITS={"TENANT": [here("key_of_async"), here("async_callable")]}) == []


def test_each_fault_is_told() -> None:
    faults = {"MOD": "off", "MODE": "on", "TENANT": ["a.b", "c.d"], "IPV6_PREFIX": 0}
    assert ids(RATELIMITS=faults) == ["E002", "E003", "E003", "E004", "E004"]


def test_settings_are_checked_although_nothing_counts() -> None:
    assert ids(RATELIMITS={"MODE": "off", "CLOCK": "frozen"}) == ["E003"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"RATELIMITS": {"CLOCK": "process"}}, ["W001"]),
        ({"RATELIMITS": {"CLOCK": "process"}, "DEBUG": True}, []),
        ({"RATELIMITS": {"CLOCK": "process", "MODE": "off"}}, []),
        ({"RATELIMITS": {"CLOCK": "store"}}, []),
    ],
)
def test_clock(settings: dict[str, Any], expected: list[str]) -> None:
    assert ids(**settings) == expected


def test_a_test_run_may_have_its_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["manage.py", "test", "orders"])
    assert ids(RATELIMITS={"CLOCK": "process"}) == []


@pytest.mark.parametrize(
    ("middleware", "expected"),
    [
        ([], []),
        ([AUTH], []),
        ([OURS, AUTH], []),
        ([AUTH, OURS], []),
        ([GZIP, CORS, OURS, UPDATE, CONDITIONAL, AUTH, FETCH], []),
        ([UPDATE, OURS, FETCH], ["W021"]),
        ([CONDITIONAL, OURS], ["W021"]),
        ([UPDATE, CONDITIONAL, AUTH, OURS, FETCH], ["W021", "W021"]),
        ([OURS, CORS], ["W022"]),
        ([UPDATE, OURS, CORS], ["W021", "W022"]),
        ([OURS, AUTH, OURS], ["W020"]),
        ([OURS, UPDATE, OURS, FETCH], ["W020"]),
        ([here("OwnUpdateCache"), OURS], ["W021"]),
        ([UPDATE, here("OwnMiddleware")], ["W021"]),
        ([here("OwnMiddleware"), OURS], ["W020"]),
        (["nowhere.Middleware", OURS, UPDATE], []),
    ],
)
def test_middleware(
    middleware: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.middleware.cache import UpdateCacheMiddleware

    from ratelimits.middleware import RateLimitMiddleware

    own = {"OwnUpdateCache": UpdateCacheMiddleware, "OwnMiddleware": RateLimitMiddleware}
    for name, base in own.items():
        monkeypatch.setattr(sys.modules[__name__], name, type(name, (base,), {}), raising=False)
    assert ids(MIDDLEWARE=middleware, CORS_EXPOSE_HEADERS=["*"]) == expected


def test_the_hint_shows_the_right_order() -> None:
    message = only(MIDDLEWARE=[UPDATE, OURS, FETCH])
    assert f'"{OURS}", "{UPDATE}"' in str(message.hint)
    message = only(MIDDLEWARE=[OURS, CORS], CORS_EXPOSE_HEADERS=["*"])
    assert f'"{CORS}", "{OURS}"' in str(message.hint)


def test_middleware_whose_name_is_lazy() -> None:
    """Django imports it all the same, so that no command should fail for it."""
    assert ids(MIDDLEWARE=[lazystr(OURS), lazystr(CORS)], CORS_EXPOSE_HEADERS=["*"]) == ["W022"]


def test_protect_needs_the_middleware() -> None:
    message = only(MIDDLEWARE=MIDDLEWARE, RATELIMITS={"PROTECT": ["/api/"]})
    assert (message.id, message.level) == ("ratelimits.E020", ERROR)
    assert OURS in str(message.hint)


def test_where_nothing_counts_the_middleware_does_not_matter() -> None:
    off = {"MODE": "off", "PROTECT": ["/api/"]}
    assert ids(MIDDLEWARE=[UPDATE, OURS, OURS, CORS], RATELIMITS=off) == []
    assert ids(MIDDLEWARE=[], RATELIMITS=off) == []


@pytest.mark.django_db
class TestPlans:
    def test_no_plan(self) -> None:
        message = only(databases=["default"])
        assert (message.id, message.level) == ("ratelimits.W030", WARNING)
        assert "manage.py ratelimits_starter" in str(message.hint)

    def test_no_default_plan(self) -> None:
        Plan.objects.create(slug="free", name="Free", is_anonymous=True)
        message = only(databases=["default"])
        assert (message.id, message.level) == ("ratelimits.W031", WARNING)
        assert "manage.py ratelimits_starter --add-missing" in str(message.hint)

    def test_what_the_hints_say_helps(self) -> None:
        Plan.objects.create(slug="own", name="Own")
        call_command("ratelimits_starter", "--add-missing", stdout=StringIO())
        assert ids(databases=["default"]) == []

    def test_a_default_plan(self) -> None:
        Plan.objects.create(slug="other", name="Other")
        Plan.objects.create(slug="free", name="Free", is_default=True)
        assert ids(databases=["default"]) == []

    def test_a_row_written_past_the_form(self) -> None:
        plan = Plan.objects.create(slug="free", name="Free", is_default=True)
        PlanLimit.objects.create(plan=plan, name="good", rate="5/m")
        PlanLimit.objects.create(plan=plan, name="bad", rate="5/m")
        PlanLimit.objects.filter(name="bad").update(rate="ten/m")
        message = only(databases=["default"])
        assert (message.id, message.level) == ("ratelimits.W032", WARNING)
        assert "ten/m" in message.msg
        assert message.obj == PlanLimit.objects.get(name="bad")

    def test_only_if_databases_are_checked(self) -> None:
        assert check_plans(databases=None) == []
        assert ids(databases=[]) == []
        assert ids(databases=["other"]) == []

    def test_not_if_nothing_counts(self) -> None:
        assert ids(databases=["default"], RATELIMITS={"MODE": "off"}) == []

    def test_the_empty_database_of_a_test_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "argv", ["manage.py", "test"])
        assert ids(databases=["default"]) == []

    def test_not_migrated(self) -> None:
        table = Plan._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} RENAME TO gone")
        assert ids(databases=["default"]) == []
        # The transaction around it is still of use.
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE gone RENAME TO {table}")
        assert ids(databases=["default"]) == ["W030"]


def test_no_database_is_touched_unless_it_is_checked() -> None:
    """This test has no database: to ask for one would fail it."""
    assert ids(deploy=True, CACHES={**REDIS, "limits": LIMITS}, RATELIMITS=GOOD) == []


@pytest.mark.parametrize("options", [[], ["--database", "default"], ["--tag", "ratelimits"]])
def test_the_command_runs_with_an_empty_database(options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "django", "check", *options],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "ratelimits.W010" in done.stderr
    assert "ratelimits.W03" not in done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["check"], ["W030"]),
        (["check", "--deploy"], ["W030"]),
        # Django asks the checks of databases then.
        (["check", "--database", "default"], []),
        (["check", "--tag=ratelimits"], []),
        (["migrate"], []),
        ([], []),
    ],
)
def test_the_command_that_checks_looks_for_plans(
    words: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    """Without being told to check databases, unlike other commands."""
    monkeypatch.setattr("sys.argv", ["manage.py", *words])
    assert ids() == expected


def test_errors_stop_commands_unless_silenced() -> None:
    with override_settings(CACHES=REDIS, RATELIMITS={"MODUS": "off"}):
        with pytest.raises(SystemCheckError, match=r"ratelimits\.E002"):
            call_command("check")
        with override_settings(SILENCED_SYSTEM_CHECKS=["ratelimits.E002"]):
            out = StringIO()
            call_command("check", stdout=out)
    assert out.getvalue() == "System check identified no issues (1 silenced).\n"
