from __future__ import annotations

import sys
from typing import Any

import pytest
from django.core.checks import ERROR, WARNING
from django.test import override_settings

from ratelimits.checks.databases import Database, database_of
from tests.checking import REDIS, ids, messages, only

CORE = "django.core.cache.backends"
DJANGO_REDIS = "django_redis.cache.RedisCache"
OWN_REDIS = f"{CORE}.redis.RedisCache"


class OwnLocMem:
    """Replaced by a class made from Django's in the test that needs it."""


def cache(backend: str, location: Any = "redis://127.0.0.1:6379/0", **options: Any) -> Any:
    return {"BACKEND": backend, "LOCATION": location, "OPTIONS": options}


def caches(backend: str, location: Any = "", **others: Any) -> dict[str, Any]:
    return {"default": cache(backend, location), **others}


@pytest.mark.parametrize(
    ("backend", "location", "expected"),
    [
        (f"{CORE}.locmem.LocMemCache", "", ["W010"]),
        (f"{CORE}.dummy.DummyCache", "", ["W011"]),
        (f"{CORE}.filebased.FileBasedCache", "/tmp/cache", ["E011"]),
        (f"{CORE}.db.DatabaseCache", "cache", []),
        (f"{CORE}.memcached.PyMemcacheCache", "127.0.0.1:11211", []),
        (OWN_REDIS, "127.0.0.1:6379", ["E011"]),
        (DJANGO_REDIS, "redis://host:port/1", ["E011"]),
        (OWN_REDIS, "redis://127.0.0.1:6379/0", []),
        (DJANGO_REDIS, "redis://127.0.0.1:6379/0", []),
    ],
)
class TestBackends:
    """Case 28."""

    def test_in_production(self, backend: str, location: str, expected: list[str]) -> None:
        assert ids(CACHES=caches(backend, location)) == expected

    def test_while_debugging(self, backend: str, location: str, expected: list[str]) -> None:
        errors = [name for name in expected if name.startswith("E")]
        assert ids(CACHES=caches(backend, location), DEBUG=True) == errors

    def test_in_a_test_run(
        self, backend: str, location: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "argv", ["manage.py", "test"])
        errors = [name for name in expected if name.startswith("E")]
        assert ids(CACHES=caches(backend, location)) == errors

    def test_switched_off(self, backend: str, location: str, expected: list[str]) -> None:
        off = {"MODE": "off"}
        assert ids(CACHES=caches(backend, location), RATELIMITS=off, deploy=True) == []

    def test_on_another_alias(self, backend: str, location: str, expected: list[str]) -> None:
        """Only the alias that counts matters."""
        limits = cache(DJANGO_REDIS, "redis://127.0.0.1:6379/9")
        both = caches(backend, location, limits=limits)
        assert ids(CACHES=both, RATELIMITS={"CACHE": "limits"}, deploy=True) == []


def test_what_the_hint_of_a_local_cache_says_can_be_pasted() -> None:
    message = only(CACHES=caches(f"{CORE}.locmem.LocMemCache"))
    assert (message.id, message.level) == ("ratelimits.W010", WARNING)
    pasted, _, after = str(message.hint).partition("and in RATELIMITS: ")
    scope: dict[str, Any] = {"CACHES": caches(f"{CORE}.locmem.LocMemCache")}
    exec(pasted.partition("\n")[2], scope)
    setting = eval("{" + after.partition("\n")[0] + "}")
    assert ids(CACHES=scope["CACHES"], RATELIMITS=setting, deploy=True) == []


def test_made_from_a_local_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.cache.backends.locmem import LocMemCache

    own = type("OwnLocMem", (LocMemCache,), {})
    monkeypatch.setattr(sys.modules[__name__], "OwnLocMem", own)
    assert ids(CACHES=caches(f"{__name__}.OwnLocMem")) == ["W010"]


def test_an_unfit_backend_is_named() -> None:
    message = only(CACHES=caches(f"{CORE}.filebased.FileBasedCache", "/tmp/cache"))
    assert message.level == ERROR
    assert "FileBasedCache" in message.msg and 'RATELIMITS["CACHE"]' in message.msg
    assert 'CACHES["ratelimits"] = {' in str(message.hint)


@pytest.mark.parametrize(
    "entry",
    [
        {"BACKEND": "nowhere.RedisCache"},
        {"BACKEND": "tests.settings.NoSuchCache"},
        {"BACKEND": DJANGO_REDIS, "LOCATION": "redis://h/0", "KEY_FUNCTION": "nowhere.make_key"},
    ],
)
def test_a_backend_that_can_not_be_made(entry: dict[str, Any]) -> None:
    assert ids(CACHES={"default": entry}, deploy=True) == ["E011"]


def test_without_the_client_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ratelimits.stores.redis", raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)
    message = only(CACHES=caches(OWN_REDIS, "redis://127.0.0.1:6379/0"))
    assert message.id == "ratelimits.E011"
    assert "redis" in message.msg


@pytest.mark.parametrize(
    ("alias", "hint"),
    [("defualt", 'Did you mean "default"?'), ("limits", 'CACHES["ratelimits"] = {')],
)
def test_missing_alias(alias: str, hint: str) -> None:
    message = only(RATELIMITS={"CACHE": alias}, deploy=True)
    assert (message.id, message.level) == ("ratelimits.E010", ERROR)
    assert f'"{alias}"' in message.msg
    assert hint in str(message.hint)


def two(url: str, other: str, backend: str = DJANGO_REDIS) -> dict[str, Any]:
    return {"default": cache(backend, url), "limits": cache(backend, other)}


@pytest.mark.parametrize(
    ("entries", "alias", "expected"),
    [
        (REDIS, "default", ["W012"]),
        (caches(OWN_REDIS, "redis://h"), "default", ["W012"]),
        (two("redis://h/0", "redis://h/1"), "limits", []),
        (two("redis://h/0", "redis://h/1", OWN_REDIS), "limits", []),
        (two("redis://h/0", "redis://g/0"), "limits", []),
        (two("redis://h/0", "redis://h:6380/0"), "limits", []),
        (two("redis://h/0", "redis://h/0"), "limits", ["W012"]),
        (two("redis://h", "redis://u:p@H:6379/0?protocol=3"), "limits", ["W012"]),
        (two("redis://h?db=1", "redis://h/1"), "limits", ["W012"]),
        (two("unix:///s?db=1", "unix:///s?db=2"), "limits", []),
        (two("unix:///s?db=1", "unix:///s?db=1"), "limits", ["W012"]),
        (two("redis://g/0,redis://h/0", "redis://h/0"), "limits", ["W012"]),
        ({**REDIS, "limits": cache(f"{CORE}.locmem.LocMemCache", "")}, "default", ["W012"]),
    ],
)
def test_a_database_shared_with_other_caches(
    entries: dict[str, Any], alias: str, expected: list[str]
) -> None:
    settings: dict[str, Any] = {"CACHES": entries, "RATELIMITS": {"CACHE": alias}}
    assert ids(deploy=True, **settings) == expected
    assert ids(deploy=False, **settings) == []


MEMCACHED = f"{CORE}.memcached.PyMemcacheCache"


@pytest.mark.parametrize(
    ("alias", "default", "limits", "expected"),
    [
        ("default", "h:11211", "h:11212", ["W012"]),
        ("limits", "h:11211", "h:11212", []),
        ("limits", "h:11211", ["g:11211", "h:11211"], ["W012"]),
        ("limits", "g:1;h:11211", "h:11211", ["W012"]),
    ],
)
def test_a_memcached_shared_with_other_caches(
    alias: str, default: Any, limits: Any, expected: list[str]
) -> None:
    entries = caches(MEMCACHED, default, limits=cache(MEMCACHED, limits))
    settings: dict[str, Any] = {"CACHES": entries, "RATELIMITS": {"CACHE": alias}}
    assert ids(deploy=True, **settings) == expected
    assert ids(deploy=False, **settings) == []


def test_what_the_hint_of_a_shared_memcached_says_can_be_pasted() -> None:
    scope: dict[str, Any] = {"CACHES": caches(MEMCACHED, "127.0.0.1:11211")}
    hint = str(only(CACHES=scope["CACHES"], deploy=True).hint)
    pasted, _, after = hint.partition("and in RATELIMITS: ")
    exec(pasted.partition("\n")[2], scope)
    setting = eval("{" + after + "}")
    assert ids(CACHES=scope["CACHES"], RATELIMITS=setting, deploy=True) == []


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("redis://h:6379/0", "redis://h:6379/1"),
        ("rediss://h", "rediss://h/1"),
        ("redis://h/1", "redis://h/2"),
        ("redis://h/0?protocol=3", "redis://h/1?protocol=3"),
        ("unix:///run/redis.sock?db=0", "unix:///run/redis.sock?db=1"),
        (["redis://h/0", "redis://g/1"], ["redis://h/2", "redis://g/2"]),
    ],
)
@pytest.mark.parametrize("backend", [DJANGO_REDIS, OWN_REDIS])
def test_what_the_hint_of_a_shared_cache_says_can_be_pasted(
    backend: str, location: Any, expected: Any
) -> None:
    message = only(CACHES=caches(backend, location), deploy=True)
    pasted, _, after = str(message.hint).partition("and in RATELIMITS: ")
    scope: dict[str, Any] = {"CACHES": caches(backend, location)}
    exec(pasted.partition("\n")[2], scope)
    assert scope["CACHES"]["ratelimits"] == cache(backend, expected)
    setting = eval("{" + after + "}")
    assert ids(CACHES=scope["CACHES"], RATELIMITS=setting, deploy=True) == []


def test_a_hint_keeps_clear_of_all_databases_in_use() -> None:
    entries = {f"c{n}": cache(DJANGO_REDIS, f"redis://h/{n}") for n in (1, 2)}
    message = only(CACHES=caches(DJANGO_REDIS, "redis://h/0", **entries), deploy=True)
    assert "redis://h/3" in str(message.hint)


def test_no_password_is_shown() -> None:
    url = "rediss://user:s3cr3t@h:6380/0"
    message = only(CACHES=caches(DJANGO_REDIS, url), deploy=True)
    assert "s3cr3t" not in str(message)
    assert "rediss://user:<password>@h:6380/1" in str(message.hint)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ({"SOCKET_TIMEOUT": 0.1}, {"SOCKET_TIMEOUT": 5}, ["W013"]),
        ({"SOCKET_TIMEOUT": 0.1}, {}, ["W013"]),
        ({"SOCKET_TIMEOUT": 5}, {"SOCKET_TIMEOUT": 5}, []),
        ({"CONNECTION_POOL_KWARGS": {"max_connections": 9}}, {}, ["W013"]),
        ({"PASSWORD": "a"}, {"PASSWORD": "b"}, ["W013"]),
        # These belong to the client, and each alias has its own.
        ({"IGNORE_EXCEPTIONS": True}, {}, []),
        ({"SERIALIZER": "django_redis.serializers.json.JSONSerializer"}, {}, []),
    ],
)
def test_one_url_with_other_options(
    ours: dict[str, Any], theirs: dict[str, Any], expected: list[str]
) -> None:
    def both(url: str, backend: str) -> dict[str, Any]:
        limits = cache(backend, "redis://127.0.0.1:6379/0", **ours)
        return {"default": cache(backend, url, **theirs), "limits": limits}

    setting = {"CACHE": "limits"}
    same, other = "redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/1"
    assert ids(CACHES=both(same, DJANGO_REDIS), RATELIMITS=setting) == expected
    # The same two aliases, with the limits counted in the other one.
    assert ids(CACHES=both(same, DJANGO_REDIS)) == expected
    assert ids(CACHES=both(other, DJANGO_REDIS), RATELIMITS=setting) == []


def test_djangos_own_backend_has_a_pool_for_each_alias() -> None:
    url = "redis://127.0.0.1:6379/0"
    entries = {
        "default": cache(OWN_REDIS, url, socket_timeout=5),
        "limits": cache(OWN_REDIS, url, socket_timeout=0.1),
    }
    assert ids(CACHES=entries, RATELIMITS={"CACHE": "limits"}) == []
    mixed = {**entries, "limits": cache(DJANGO_REDIS, url, SOCKET_TIMEOUT=0.1)}
    assert ids(CACHES=mixed, RATELIMITS={"CACHE": "limits"}) == []
    assert ids(CACHES=mixed, RATELIMITS={"CACHE": "default"}) == []


def test_the_message_about_a_pool_names_what_differs() -> None:
    url = "redis://127.0.0.1:6379/0"
    entries = {
        "default": cache(DJANGO_REDIS, url, SOCKET_TIMEOUT=5, PASSWORD="s3cr3t"),
        "limits": cache(DJANGO_REDIS, url, SOCKET_TIMEOUT=0.1, PASSWORD="s3cr3t"),
    }
    (message,) = messages(CACHES=entries, RATELIMITS={"CACHE": "limits"})
    assert message.level == WARNING
    assert '"limits" and "default"' in message.msg and "SOCKET_TIMEOUT" in message.msg
    assert "s3cr3t" not in str(message) and "PASSWORD" not in message.msg


@pytest.mark.parametrize(
    ("url", "options", "expected"),
    [
        ("redis://h", {}, Database("h:6379", "0")),
        ("redis://h", {"db": 3}, Database("h:6379", "3")),
        ("redis://h/1", {"db": 3}, Database("h:6379", "1")),
        ("redis://h/1?db=2", {"db": 3}, Database("h:6379", "2")),
        ("redis://h", {"CONNECTION_POOL_KWARGS": {"db": 4}}, Database("h:6379", "4")),
        ("rediss://u:p@[2001:db8::1]:7000/5", {}, Database("[2001:db8::1]:7000", "5")),
        ("redis://[2001:db8::1]", {}, Database("[2001:db8::1]:6379", "0")),
        ("unix://u:p@/run/redis.sock", {"db": 3}, Database("/run/redis.sock", "3")),
    ],
)
def test_the_database_is_the_one_that_the_client_picks(
    url: str, options: dict[str, Any], expected: Database
) -> None:
    import redis

    with override_settings(CACHES={"default": cache(OWN_REDIS, url, **options)}):
        assert database_of(url, "default") == expected
    preset = {"db": options.get("db", options.get("CONNECTION_POOL_KWARGS", {}).get("db", 0))}
    pool = redis.ConnectionPool.from_url(url, **preset)
    assert str(pool.connection_kwargs["db"]) == expected.number
