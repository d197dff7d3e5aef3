"""The other stores, as they should be and as they should not."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections

from ratelimits.doctor import waiting
from ratelimits.limiter import take
from ratelimits.models import Plan
from ratelimits.stores import database
from tests.conformance.stores import close, database_store, postgresql_store
from tests.fresh import PATIENT
from tests.servers import MemcachedServer, PostgreSQLServer, free_port
from tests.settings import database_caches, memcached_caches

from .looking import look, printed

CORE = "django.core.cache.backends"


@pytest.fixture
def free(db: None) -> None:
    Plan.objects.create(slug="free", is_default=True).limits.create(name="api", rate="10/h")


@pytest.mark.usefixtures("fresh", "free")
class TestMemory:
    def test_all_is_well(self, settings: Any) -> None:
        settings.DEBUG = True
        found = look()
        assert {finding.level for finding in found.values()} == {"ok"}
        assert found["store"].value["kind"] == "memory"
        assert printed()[1] == 0

    def test_several_processes_would_count_alone(self) -> None:
        """As the system check says, unless DEBUG is on."""
        assert look()["ratelimits.W010"].level == "warning"
        assert printed()[1] == 0
        assert printed("--strict")[1] == 1

    def test_a_dummy_cache(self, settings: Any) -> None:
        settings.CACHES = {"default": {"BACKEND": f"{CORE}.dummy.DummyCache"}}
        found = look()
        assert found["store"].level == "warning"
        assert "store.counts" not in found and "breaker" not in found
        assert found["catalog.plans"].value["plans"] == 1

    @pytest.mark.parametrize(
        "entry",
        [
            {"BACKEND": f"{CORE}.filebased.FileBasedCache", "LOCATION": "/nowhere"},
            {"BACKEND": "no.such.Backend"},
            {"BACKEND": f"{CORE}.redis.RedisCache", "LOCATION": "http://127.0.0.1"},
        ],
        ids=["not exact", "not there", "not an address"],
    )
    def test_an_alias_on_which_nothing_counts(self, entry: Any, settings: Any) -> None:
        settings.CACHES = {"default": entry}
        found = look()
        assert found["store"].level == found["breaker"].level == "problem"
        assert found["catalog.plans"].level == "ok"
        assert printed()[1] == 2

    def test_an_alias_that_is_not_there(self, settings: Any) -> None:
        settings.RATELIMITS = {"CACHE": "defualt"}
        found = look()
        assert found["ratelimits.E010"].level == found["store"].level == "problem"
        assert 'Did you mean "default"?' in found["ratelimits.E010"].advice


@pytest.mark.usefixtures("fresh", "free")
class TestMemcached:
    @pytest.fixture(autouse=True)
    def on_memcached(self, memcached_server: MemcachedServer, settings: Any) -> None:
        settings.CACHES = memcached_caches(memcached_server.address)
        settings.RATELIMITS = PATIENT

    def test_all_is_well(self, memcached_server: MemcachedServer) -> None:
        found = look()
        assert found["store"].value["address"] == memcached_server.address
        assert found["store.counts"].level == found["store.server"].level == "ok"
        assert found["store.evictions"].level == found["breaker"].level == "ok"
        assert found["store.clock"].value["of"] == "machine"
        assert found["store.server"].value["max_bytes"] > 0
        assert found["store.server"].value["version"][0].isdigit()
        # memcached does not tell for how long it keeps an item.
        assert found["catalog.version"].value["seconds_since_edit"] is None

    def test_items_that_were_evicted(self, memcached_server: MemcachedServer) -> None:
        fill(memcached_server)
        found = look()["store.evictions"]
        memcached_server.restart()
        assert found.level == "warning"
        assert found.value["evicted_keys"] > 0

    def test_a_server_that_is_not_there(self, memcached_server: MemcachedServer) -> None:
        memcached_server.kill()
        found = look()
        assert found["store.counts"].level == found["breaker"].level == "problem"

    def test_a_server_that_hangs(self, memcached_server: MemcachedServer, settings: Any) -> None:
        settings.RATELIMITS = {"STORE_TIMEOUT": 0.05}
        memcached_server.stop()
        started = time.monotonic()
        found = look()
        assert time.monotonic() - started < 20
        assert found["store.counts"].level == found["breaker"].level == "problem"

    def test_one_of_two_servers_is_away(
        self, memcached_server: MemcachedServer, settings: Any
    ) -> None:
        away = f"127.0.0.1:{free_port()}"
        settings.CACHES = memcached_caches(f"{memcached_server.address};{away}")
        found = look()
        # On which of the two the doctor's own take is counted is a matter of chance.
        name = "store.server" if found["store.counts"].level == "ok" else "store.counts"
        assert found[name].level == "problem"


def fill(server: MemcachedServer) -> None:
    """More than it has room for: 64 MB, unless it is told otherwise."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        block = b"x" * 1_000_000
        for number in range(80):
            head = f"set filler{number} 0 0 {len(block)} noreply\r\n".encode()
            connection.sendall(head + block + b"\r\n")
        connection.sendall(b"version\r\n")
        assert connection.recv(100).startswith(b"VERSION")


class Router:
    """All of our tables, or only the counts, are in another database."""

    def __init__(self, alias: str, models: tuple[str, ...] = ()) -> None:
        self.alias = alias
        self.models = models

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        ours = model._meta.app_label == "ratelimits"
        return self.alias if ours and model._meta.model_name in self.models else None

    db_for_read = db_for_write


@contextmanager
def routed(store: Any, settings: Any, *models: str) -> Iterator[None]:
    settings.DATABASE_ROUTERS = [Router(store.own.alias, models)]
    try:
        yield
    finally:
        settings.DATABASE_ROUTERS = []
        close(store)


@pytest.mark.usefixtures("fresh", "free")
class TestDatabases:
    @pytest.fixture(autouse=True)
    def on_a_database(self, settings: Any) -> None:
        settings.CACHES = database_caches()
        settings.RATELIMITS = PATIENT

    def test_sqlite(self) -> None:
        take("acme")
        found = look()
        assert found["store"].value["kind"] == "database"
        assert found["store.table"].value["vendor"] == "sqlite"
        assert found["store.table"].value["rows"] >= 1
        assert found["store.counts"].level == found["breaker"].level == "ok"

    def test_postgresql(
        self,
        postgresql_server: PostgreSQLServer,
        really_connecting: Any,
        settings: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        # One take in so many deletes what has expired.
        monkeypatch.setattr(database, "SWEEP_EVERY", math.inf)
        with really_connecting():
            store = postgresql_store(postgresql_server)
            with routed(store, settings, "storerow"):
                with store.own.lent() as connection, connection.cursor() as cursor:
                    cursor.execute(
                        "INSERT INTO ratelimits_storerow VALUES ('old', '', 1), ('new', '', %s)",
                        [2**62],
                    )
                take("acme")
                found = look()
                assert found["store.counts"].level == "ok"
                assert found["store.table"].value["rows"] == 3
                assert found["store.table"].value["expired"] == 1
                assert found["store.clock"].value["of"] == "server"
                assert str(postgresql_server.port) in found["store"].value["address"]

    def test_without_its_table(
        self, postgresql_server: PostgreSQLServer, really_connecting: Any, settings: Any
    ) -> None:
        with really_connecting():
            entry = {**postgresql_server.settings(), "NAME": "template1"}
            with routed(database_store(entry, 5), settings, "storerow"):
                found = look()["store.counts"]
                assert found.level == "problem"
                assert "migrate" in found.text

    def test_a_database_of_counts_that_hangs(
        self, postgresql_server: PostgreSQLServer, really_connecting: Any, settings: Any
    ) -> None:
        settings.RATELIMITS = {}
        with really_connecting():
            store = postgresql_store(postgresql_server, timeout=0.5)
            with routed(store, settings, "storerow"):
                postgresql_server.stop()
                started = time.monotonic()
                found = look()
                postgresql_server.cont()
                assert time.monotonic() - started < 20
                assert found["store.counts"].level == found["breaker"].level == "problem"


ALL = ("plan", "planlimit", "tenant", "tenantlimit", "servicelimit")


@pytest.mark.usefixtures("fresh", "db")
class TestCatalogElsewhere:
    def test_not_migrated(
        self, postgresql_server: PostgreSQLServer, really_connecting: Any, settings: Any
    ) -> None:
        with really_connecting():
            entry = {**postgresql_server.settings(), "NAME": "template1"}
            with routed(database_store(entry, 5), settings, *ALL):
                found = look()["catalog"]
                assert found.level == "problem"
                assert "0001_initial" in found.value["unapplied"]
                assert "manage.py migrate ratelimits" in found.advice

    def test_not_there(self, really_connecting: Any, settings: Any) -> None:
        with really_connecting():
            entry = {
                "ENGINE": "django.db.backends.postgresql",
                "HOST": "127.0.0.1",
                "PORT": str(free_port()),
                "NAME": "x",
                "PASSWORD": "a-secret-word",
            }
            with routed(database_store(entry, 5), settings, *ALL):
                found = look()["catalog"]
                assert found.level == "problem"
                assert "refused" in found.text

    def test_hanging(
        self,
        postgresql_server: PostgreSQLServer,
        really_connecting: Any,
        settings: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(waiting, "PATIENCE", 0.5)
        with really_connecting():
            store = database_store(postgresql_server.settings(), 5)
            with routed(store, settings, *ALL):
                postgresql_server.stop()
                started = time.monotonic()
                found = look()["catalog"]
                assert time.monotonic() - started < 20
                assert (found.level, found.value["readable"]) == ("problem", False)
                assert "no answer within 0.5 s" in found.text
                postgresql_server.cont()
                wait_for_the_doctors_thread()

    def test_read_in_a_thread_of_its_own(
        self, postgresql_server: PostgreSQLServer, really_connecting: Any, settings: Any
    ) -> None:
        with really_connecting():
            store = postgresql_store(postgresql_server)
            with routed(store, settings, *ALL):
                found = look()
                assert found["catalog"].value["readable"] is True
                assert found["ratelimits.W030"].level == "warning"
                assert connections[store.own.alias].connection is None


def wait_for_the_doctors_thread() -> None:
    import threading

    for thread in threading.enumerate():
        if thread.name == "ratelimits-doctor":
            thread.join(20)
            assert not thread.is_alive()
