"""Several servers that make up one store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from ratelimits.catalog import plans_key
from ratelimits.doctor.report import examine
from ratelimits.edits import Edit
from ratelimits.limiter import take
from ratelimits.models import Plan
from tests.clusters import RedisCluster
from tests.fresh import PATIENT, the_redis_store
from tests.sentinels import Watched
from tests.settings import redis_caches
from tests.test_sentinel import through_django, through_django_redis

from .looking import look

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh")]


@pytest.fixture
def cluster(start_server: Any, settings: Any) -> Iterator[RedisCluster]:
    servers: RedisCluster = start_server("cluster")
    servers.recover()
    settings.CACHES = redis_caches(servers.url)
    settings.RATELIMITS = PATIENT
    Plan.objects.create(slug="free", is_default=True).limits.create(name="api", rate="10/h")
    yield servers
    servers.recover()


def test_each_primary_is_looked_at(cluster: RedisCluster) -> None:
    for number in range(30):
        take(f"tenant {number}")
    Edit(plans=True).publish()
    found = examine()
    addresses = {node.address for node in cluster.nodes}
    for name in ("store.server", "store.role", "store.memory", "store.evictions", "store.keys"):
        named = {f.value["address"] for f in found if f.name == name}
        assert named == addresses, name
    assert all(f.value["cluster"] for f in found if f.name == "store.role")
    ours = sum(f.value["ours"] for f in found if f.name == "store.keys")
    assert ours == len(cluster.names())
    levels = {f.name: f.level for f in found if not f.name.startswith("ratelimits.")}
    assert set(levels.values()) == {"ok"}
    (version,) = (f for f in found if f.name == "catalog.version")
    assert version.value["seconds_since_edit"] < 60


def test_a_key_without_an_end(cluster: RedisCluster) -> None:
    """On one of them, whichever tag it has."""
    store = the_redis_store()
    assert store.cluster is not None
    name = store.cluster.make_key(plans_key(), 17)
    store.cluster.do(17, "SET", name, "planted")
    found = look()["store.keys"]
    assert (found.level, found.value["without_ttl"]) == ("warning", 1)
    assert name in found.text


def test_one_primary_is_away(cluster: RedisCluster, settings: Any) -> None:
    settings.RATELIMITS = {**PATIENT, "STORE_TIMEOUT": 1}
    cluster.nodes[2].stop()
    found = look()
    # Where the doctor's own bucket is, is a matter of chance.
    name = "store.server" if found["store.counts"].level == "ok" else "store.counts"
    assert found[name].level == "problem"
    assert cluster.nodes[2].address in found[name].text


@pytest.mark.parametrize("through", [through_django, through_django_redis])
def test_behind_sentinel(
    through: Any, tmp_path_factory: pytest.TempPathFactory, settings: Any
) -> None:
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis is not installed")
    watched = Watched(binary, tmp_path_factory.mktemp("sentinel"))
    try:
        settings.CACHES = {"default": through(watched)}
        settings.RATELIMITS = PATIENT
        found = look()
        assert found["store.counts"].level == "ok"
        assert watched.sentinel.service in found["store"].value["address"]
        assert found["store.role"].value == {"role": "master", "replicas": 1, "cluster": False}
    finally:
        watched.kill()
