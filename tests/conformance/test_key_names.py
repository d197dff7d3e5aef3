"""Keys: nothing can be read from them, no two run together, and the alias has its say."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.test import RequestFactory, override_settings
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from ratelimits.keys import digest
from ratelimits.limiter import take
from ratelimits.models import Plan, ServiceLimit
from tests.fresh import PATIENT
from tests.servers import RedisServer

from .examples import ALGORITHMS, examples
from .stores import Calls, close, limit, redis_store
from .watching import KEY, watch

ODD = [
    "a" * 1_000_000,
    "\ud800 lone \udfff",
    "null \0 and line\r\nbreak",
    "{braces}} {rl}",
    "Größe 大きさ 🎈",
    "' OR 1=1 --",
    " ",
    "*?[a-z]\\",
]


@pytest.fixture
def plan(db: None) -> Plan:
    plan = Plan.objects.create(slug="p", name="P", is_default=True)
    plan.limits.create(name="sold", rate="2/d")
    plan.limits.create(name="log", rate="100/d", algorithm="sliding_log")
    ServiceLimit.objects.create(name="each", rate="1000/d", per="address")
    ServiceLimit.objects.create(name="all", rate="1000/d")
    return plan


def everything_in(server: RedisServer) -> bytes:
    """All keys and values, as a backup would have them."""
    client = server.client()
    return b"\n".join(key + b"=" + client.dump(key) for key in client.scan_iter())


def secret_tenant(request: Any) -> str | None:
    return request.META.get("HTTP_X_API_KEY")


@pytest.mark.usefixtures("plan")
def test_no_secret_is_readable(on_redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    """Case 9: neither a tenant's key nor an address, in keys, values, fields or the log."""
    caplog.set_level(logging.DEBUG)
    with override_settings(RATELIMITS={**PATIENT, "TENANT": [f"{__name__}.secret_tenant"]}):
        for headers in ({"X-API-Key": "sk_live_123"}, {}):
            for _ in range(4):
                request = RequestFactory().get("/", headers=headers, REMOTE_ADDR="198.51.100.77")
                decision = take(request)
                assert "sk_live_123" not in str(decision.headers())
                assert "198.51.100.77" not in str(decision.headers())
    assert not decision.allowed
    found = everything_in(on_redis)
    assert found.count(b"{rl}") >= 5
    for secret in (b"sk_live_123", b"sk_live", b"198.51.100", b"sold"):
        assert secret not in found
    assert "sk_live_123" not in caplog.text


@pytest.mark.usefixtures("plan")
def test_keys_depend_on_a_secret(on_redis: RedisServer) -> None:
    """So that nobody who sees them can try names until one fits."""
    take("acme")
    before = set(on_redis.client().scan_iter())
    with override_settings(RATELIMITS={**PATIENT, "KEY_SECRET": "another"}):
        take("acme")
    after = set(on_redis.client().scan_iter()) - before
    assert len(after) == len(before) == 3, "the tenant's, its log's, and everyone's"


@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize("key", ODD, ids=range(len(ODD)))
def test_any_tenant_key(key: str, on_redis: RedisServer) -> None:
    assert [take(key).allowed for _ in range(3)] == [True, True, False]
    assert take(key + "x").allowed
    assert max(len(name) for name in on_redis.client().scan_iter()) < 64


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a:b", "c"), ("a", "b:c")),
        (("tenant", "1", "user", "21"), ("tenant", "12", "user", "1")),
        (("address", "10"), ("tenant", "10")),
        (("a", ""), ("a",)),
        (("1:a", ""), ("1", ":a")),
        (("\ud800",), ("\udfff",)),
    ],
)
def test_parts_do_not_run_together(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Case 8."""
    assert digest(*one) != digest(*other)
    assert digest(*one) == digest(*one)


@examples(200)
@given(parts=st.lists(st.lists(st.text("a:1", max_size=4)), min_size=2, max_size=30))
def test_no_two_lists_of_parts_have_one_digest(parts: list[list[str]]) -> None:
    different = {tuple(each) for each in parts}
    assert len({digest(*each) for each in different}) == len(different)


@pytest.mark.usefixtures("plan")
def test_a_user_a_tenant_and_an_address_of_one_name(on_redis: RedisServer) -> None:
    """Case 8: three buckets."""
    callers = ["user:10", "10", RequestFactory().get("/", REMOTE_ADDR="10.0.0.1"), "10.0.0.1"]
    assert all(take(caller).allowed for caller in callers)
    assert all(take(caller).allowed for caller in ["user:10", "10", "10.0.0.1"])


@pytest.mark.usefixtures("plan")
def test_limits_of_one_name_for_different_callers(on_redis: RedisServer) -> None:
    """The service's own limit may be called as a plan's."""
    ServiceLimit.objects.create(name="sold", rate="50/d")
    first, second = take("acme"), take("bakery")
    names = [(o.name, o.limit.per, o.remaining) for o in first.outcomes if o.name == "sold"]
    assert names == [("sold", "tenant", 1), ("sold", "everyone", 49)]
    assert [o.remaining for o in second.outcomes if o.name == "sold"] == [1, 48]


def shouting(key: str, prefix: str, version: int) -> str:
    return f"{prefix}!{version}!{key}"


@pytest.mark.parametrize("backend", ["django-redis", "django"])
@pytest.mark.parametrize(
    "params",
    [{"KEY_PREFIX": "prod"}, {"VERSION": 7}, {"KEY_FUNCTION": f"{__name__}.shouting"}],
    ids=lambda params: next(iter(params)),
)
def test_the_alias_names_the_keys(
    backend: str, params: dict[str, Any], redis_server: RedisServer
) -> None:
    """Case 40: what is exhausted under one prefix, version or function is untouched in another."""
    staging = redis_store(redis_server.url, backend, KEY_PREFIX="staging")
    other = redis_store(redis_server.url, backend, **{"KEY_PREFIX": "staging", **params})
    one = Calls(staging, limit("1/m"), limit("9/m", "log", algorithm="sliding_log"))
    two = Calls(other, *one.limits.values(), subject=one.subject)
    assert one.take(at=None).allowed
    refused = one.take(at=None)
    assert refused.retry_after is not None
    assert refused.retry_after >= 1
    assert two.take(at=None).allowed
    for store in (staging, other):
        store.set_versions({"version": "v"}, 60)
        assert store.versions(["version"]) == ("v",)
        expected = store.backend.make_key("{rl}" + one.subject)
        assert redis_server.client().exists(expected)
        close(store)
    assert len(list(redis_server.client().scan_iter())) == 6


def test_all_keys_of_a_call_are_declared_and_share_a_slot(redis_server: RedisServer) -> None:
    """Case 39: Redis Cluster wants each key in KEYS, and all of them in one hash slot."""
    store = redis_store(redis_server.url, KEY_PREFIX="staging")
    limits = [limit("5/m", f"{a} {n}", algorithm=a) for a in ALGORITHMS for n in range(2)]
    calls = Calls(store, *limits)
    others = Calls(store, *limits)
    calls.take()
    with watch(redis_server) as seen:
        for operation in (calls.take, calls.peek, calls.charge, calls.refund, others.take):
            operation(3)
        calls.take(at=None)
    declared = {key for text in seen.sent for key in KEY.findall(text)}
    touched = {key for text in seen.inside for key in KEY.findall(text)}
    assert len(declared) == 6, "two callers, each with a key of its own and two logs"
    assert touched == declared
    assert len({key_slot(key.encode()) for key in declared}) == 1
    close(store)


def test_versions_share_the_slot(redis_server: RedisServer) -> None:
    store = redis_store(redis_server.url)
    assert key_slot(store.make_key("a").encode()) == key_slot(store.make_key("b").encode())
    close(store)
