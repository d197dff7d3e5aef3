"""A real Redis, as it should be and as it should not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from ratelimits.catalog import plans_key
from ratelimits.doctor import redis as judging
from ratelimits.doctor import store as doctors_store
from ratelimits.edits import Edit
from ratelimits.limiter import take
from ratelimits.models import Plan
from ratelimits.stores import get_store
from ratelimits.stores.facts import RedisFacts
from ratelimits.stores.guarded import GuardedStore
from tests.fresh import PATIENT, the_redis_store
from tests.servers import RedisServer
from tests.settings import redis_caches

from .looking import look, printed

pytestmark = pytest.mark.django_db
STORE = (
    "store", "store.counts", "store.latency", "store.clock", "store.server", "store.role",
    "store.memory", "store.evictions", "store.persistence", "store.keys", "catalog.version",
    "processes", "breaker",
)  # fmt: skip


@pytest.fixture(autouse=True)
def acme() -> None:
    Plan.objects.create(slug="free", is_default=True).limits.create(name="api", rate="10/h")


@contextmanager
def configured(server: RedisServer, **options: Any) -> Iterator[None]:
    """With options of the server, which are as before in the end."""
    client = server.client()
    names = {name.replace("_", "-"): value for name, value in options.items()}
    before: dict[str, Any] = {name: client.config_get(name)[name] for name in names}
    for name, value in names.items():
        client.config_set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            client.config_set(name, str(value))


@pytest.mark.parametrize(
    "backend", ["django_redis.cache.RedisCache", "django.core.cache.backends.redis.RedisCache"]
)
def test_all_is_well(backend: str, redis_like: RedisServer, settings: Any, fresh: None) -> None:
    settings.CACHES = redis_caches(redis_like.url, backend)
    settings.RATELIMITS = PATIENT
    take("acme")
    found = look()
    assert [name for name in STORE if found[name].level != "ok"] == []
    assert found["store"].value["address"] == f"{redis_like.address}, database 0"
    assert found["store.server"].value["product"] == redis_like.name
    # What the doctor took itself is gone.
    assert (found["store.keys"].value["ours"], found["store.keys"].value["complete"]) == (1, True)
    assert abs(found["store.clock"].value["ahead_seconds"]) < 2


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_server_that_evicts(policy: str, on_redis: RedisServer) -> None:
    with configured(on_redis, maxmemory="100mb", maxmemory_policy=policy):
        found = look()["store.memory"]
    assert (found.level, found.value["policy"]) == ("warning", policy)
    assert "CONFIG SET maxmemory-policy noeviction" in found.advice


def test_eviction_that_never_happens(on_redis: RedisServer) -> None:
    with configured(on_redis, maxmemory="0", maxmemory_policy="allkeys-lru"):
        assert look()["store.memory"].level == "ok"


def test_a_server_that_is_full(on_redis: RedisServer) -> None:
    """It answers, and reads; but nothing can be counted."""
    take("acme")
    with configured(on_redis, maxmemory="1", maxmemory_policy="noeviction"):
        found = look()
        assert found["store.counts"].level == "problem"
        assert "maxmemory" in found["store.counts"].text


@pytest.mark.parametrize(
    ("part", "level"), [(0.5, "ok"), (0.85, "warning"), (0.97, "problem"), (1.2, "problem")]
)
def test_a_server_that_fills_up(part: float, level: str) -> None:
    info = {"used_memory": int(part * 10**9), "maxmemory": 10**9, "maxmemory_policy": "noeviction"}
    found = {f.name: f for f in judging.judge(RedisFacts(info, "", None))}
    assert found["store.memory"].level == level


def test_keys_that_were_evicted(on_redis: RedisServer) -> None:
    client = on_redis.client()
    client.config_resetstat()
    for number in range(200):
        client.set(f"filler {number}", "x" * 10_000)
    used = client.info("memory")["used_memory"]
    with configured(on_redis, maxmemory_policy="allkeys-lru", maxmemory=str(used - 1_000_000)):
        client.set("one", "more")
        found = look()["store.evictions"]
    client.config_resetstat()
    assert found.level == "warning"
    assert found.value["evicted_keys"] > 0


@pytest.mark.parametrize("limits_prefix", ["", "staging"])
def test_a_key_without_an_end(limits_prefix: str, on_redis: RedisServer, settings: Any) -> None:
    caches = redis_caches(on_redis.url)
    caches["default"]["KEY_PREFIX"] = limits_prefix
    settings.CACHES = caches
    client = on_redis.client()
    client.set("somebody else's", "value")
    take("acme")
    planted = the_redis_store().make_key("planted")
    client.set(planted, "value")
    found = look()["store.keys"]
    assert found.level == "warning"
    assert found.value == {"looked_at": 3, "ours": 2, "without_ttl": 1, "complete": True}
    assert planted in found.text
    assert "somebody" not in found.text


def test_many_keys_of_others(on_redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look ends early, and says so."""
    monkeypatch.setattr("ratelimits.stores.redis_facts.MOST_KEYS", 1000)
    on_redis.client().mset({f"other {number}": "x" for number in range(3000)})
    value = look()["store.keys"].value
    assert value["complete"] is False
    assert 1000 <= value["looked_at"] < 3000


def test_keys_that_can_not_be_told_from_others(on_redis: RedisServer, settings: Any) -> None:
    caches = redis_caches(on_redis.url)
    caches["default"]["KEY_FUNCTION"] = "tests.doctor.test_redis.hashed"
    settings.CACHES = caches
    found = look()["store.keys"]
    assert found.level == "ok"
    assert "can't be told from others" in found.text


def hashed(key: str, prefix: str, version: int) -> str:
    return str(abs(hash(key)))


def test_a_version_without_an_end(on_redis: RedisServer) -> None:
    take("acme")
    on_redis.client().set(the_redis_store().make_key(plans_key()), "planted")
    found = look()["catalog.version"]
    assert (found.level, found.value["without_ttl"]) == ("warning", True)
    assert "ratelimits_refresh" in found.advice
    call_command("ratelimits_refresh", stdout=StringIO())
    Edit(plans=True).publish()
    assert look()["catalog.version"].level == "ok"


def test_when_the_plans_were_edited(on_redis: RedisServer) -> None:
    Edit(plans=True).publish()
    assert 0 <= look()["catalog.version"].value["seconds_since_edit"] < 60
    on_redis.client().flushall()
    assert look()["catalog.version"].value["seconds_since_edit"] is None


def test_a_server_that_is_not_there(redis_server: RedisServer, settings: Any, fresh: None) -> None:
    settings.CACHES = redis_caches(redis_server.url)
    redis_server.kill()
    found = look()
    assert found["store"].value["address"] == f"{redis_server.address}, database 0"
    assert found["store.counts"].level == found["breaker"].level == "problem"
    assert "refused" in found["store.counts"].text
    assert "counts its part by itself" in found["breaker"].text
    assert "store.server" not in found
    assert found["catalog.plans"].value["plans"] == 1
    assert printed()[1] == 2


def test_nobody_is_woken_up(
    redis_server: RedisServer, settings: Any, fresh: None, caplog: pytest.LogCaptureFixture
) -> None:
    """By signals or logs of a look, as they are by those of requests."""
    settings.CACHES = redis_caches(redis_server.url)
    redis_server.kill()
    store = get_store()
    assert isinstance(store, GuardedStore)
    assert look()["breaker"].value == {
        "open": False, "answers_in_time": False, "store_failure": "local"
    }  # fmt: skip
    assert not store.breaker.is_open
    assert not caplog.records
    assert take("acme").allowed
    assert look()["breaker"].value["open"] is True


def test_processes_that_count_each_other(on_redis: RedisServer, settings: Any) -> None:
    settings.RATELIMITS = {**PATIENT, "WORKERS": None}
    assert look()["processes"].value == {"counted": 0, "workers": None}
    for ident in ("one", "two"):
        the_redis_store().count_processes(ident, 300)
    assert look()["processes"].value == {"counted": 2, "workers": None}
    assert look()["processes"].value["counted"] == 2, "who looks is not counted"
    settings.RATELIMITS = {**PATIENT, "WORKERS": 5}
    assert look()["processes"].value["workers"] == 5


def test_a_server_that_hangs(redis_server: RedisServer, settings: Any, fresh: None) -> None:
    settings.CACHES = redis_caches(redis_server.url)
    settings.RATELIMITS = {"STORE_FAILURE": "deny"}
    redis_server.stop()
    started = time.monotonic()
    found = look()
    assert time.monotonic() - started < 20
    assert found["store.counts"].level == found["breaker"].level == "problem"
    assert "503" in found["breaker"].text


def test_a_server_that_hangs_half_way(
    on_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found until then is told."""
    latency = doctors_store._latency

    def latency_and_death(rounds: Any) -> Any:
        on_redis.kill()
        return latency(rounds)

    monkeypatch.setattr(doctors_store, "_latency", latency_and_death)
    found = look()
    assert found["store.counts"].level == "ok"
    assert found["store.server"].level == "problem"


@pytest.mark.parametrize("where", ["url", "options"])
def test_a_wrong_password(
    where: str, redis_server: RedisServer, settings: Any, fresh: None
) -> None:
    secret = "s3cret-of-ours"
    caches = redis_caches(redis_server.url)
    if where == "url":
        caches["default"]["LOCATION"] = redis_server.url.replace("//", f"//:{secret}@")
    else:
        caches["default"]["OPTIONS"] = {"PASSWORD": secret}
    settings.CACHES = caches
    with configured(redis_server, requirepass="right"):
        text, code = printed()
        redis_server.client().config_set("requirepass", "")
    assert code == 2
    assert "problem  store.counts: Redis can't count now" in text
    assert secret not in text
    assert redis_server.address in text


def test_an_address_that_can_not_be_read(settings: Any, fresh: None) -> None:
    """A password with marks in it, from which a library quotes a piece."""
    settings.CACHES = redis_caches("redis://:h4rd?to/guess@127.0.0.1:6379/0")
    text, code = printed()
    assert code == 2
    assert "problem  store: " in text
    assert "h4rd" not in text and "guess" not in text


def test_a_user_who_may_do_little(on_redis: RedisServer, settings: Any) -> None:
    """As many as counting needs: managed servers forbid the rest."""
    client = on_redis.client()
    client.execute_command(
        "ACL", "SETUSER", "app", "on", ">pw", "~*", "resetchannels", "-@all",
        "+eval", "+evalsha", "+get", "+set", "+mget", "+del", "+time", "+pttl",
    )  # fmt: skip
    settings.CACHES = redis_caches(on_redis.url.replace("//", "//app:pw@"))
    found = look()
    assert found["store.counts"].level == "ok"
    assert found["store.server"].level == "warning"
    assert "+info" in found["store.server"].advice
    client.execute_command("ACL", "DELUSER", "app")


def test_a_user_who_may_not_count(on_redis: RedisServer, settings: Any) -> None:
    client = on_redis.client()
    client.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@read", "+info")
    settings.CACHES = redis_caches(on_redis.url.replace("//", "//app:pw@"))
    found = look()["store.counts"]
    assert found.level == "problem"
    assert "evalsha" in found.text
    client.execute_command("ACL", "DELUSER", "app")


def test_a_replica(on_redis: RedisServer) -> None:
    client = on_redis.client()
    client.replicaof("127.0.0.1", 1)
    try:
        found = look()["store.counts"]
    finally:
        client.replicaof("NO", "ONE")
    assert found.level == "problem"
    assert "read only" in found.text or "READONLY" in found.text


def test_what_a_restart_forgets(on_redis: RedisServer) -> None:
    assert "all buckets are full" in look()["store.persistence"].text
    with configured(on_redis, save="3600 1"):
        assert "snapshots (3600 1)" in look()["store.persistence"].text
    with configured(on_redis, appendonly="yes"):
        assert look()["store.persistence"].value["aof"] is True


def test_a_disk_that_is_full() -> None:
    info = {"rdb_last_bgsave_status": "err", "aof_enabled": 0}
    found = {f.name: f for f in judging.judge(RedisFacts(info, "3600 1", None))}
    assert found["store.persistence"].level == "problem"


class TestTimes:
    """Of a store that takes its time, which is told and not waited for."""

    @pytest.mark.parametrize(
        ("first", "times", "level"),
        [
            (3.0, [1.0, 1.0, 2.0], "ok"),
            (60.0, [1.0, 1.0, 2.0], "warning"),
            (3.0, [1.0, 1.0, 70.0], "warning"),
            (90.0, [60.0, 80.0, 70.0], "problem"),
        ],
    )
    def test_latency(self, first: float, times: list[float], level: str) -> None:
        found = doctors_store._latency(doctors_store.Rounds(first, times, 0.0))
        assert found.level == level

    def test_slower_than_requests_wait(self, on_redis: RedisServer, settings: Any) -> None:
        settings.RATELIMITS = {**PATIENT, "STORE_TIMEOUT": 0.000001}
        found = look()
        assert found["store.counts"].level == "ok"
        assert found["store.latency"].level == "problem"

    @pytest.mark.parametrize(("ahead", "level"), [(0.1, "ok"), (2.0, "warning"), (-2.0, "warning")])
    def test_clocks_that_differ(self, ahead: float, level: str) -> None:
        found = doctors_store._clock(ahead, is_servers=True)
        assert found.level == level
        assert ("behind" if ahead < 0 else "ahead of") in found.text
