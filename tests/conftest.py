"""Fixtures for all tests: the servers that they need, and the rule about skipped tests."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from unittest.mock import Mock, patch

import django
import pytest
from django.core.management.commands import flush
from django.db import connections
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from tests.admin_site import staff  # noqa: F401 (a fixture)
from tests.clusters import RedisCluster
from tests.fresh import forget_everything, fresh, on_redis, still  # noqa: F401 (fixtures)
from tests.servers import (
    MemcachedServer,
    PostgreSQLServer,
    RedisServer,
    Server,
    ValkeyServer,
    find_postgresql,
    find_valkey,
)

# How long an example takes is the machine's affair, and no fault of what is tried.
hypothesis_settings.register_profile(
    "ours", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("ours")

# For tests of the plugin that projects have.
pytest_plugins = ["pytester"]

AnyServer = TypeVar("AnyServer", bound=Server | RedisCluster)
StartServer = Callable[[str], Any]

NO_SKIPS = os.environ.get("RATELIMITS_NO_SKIPS") == "1"
LONG = os.environ.get("RATELIMITS_LONG") == "1"
left_out = pytest.StashKey[int]()
SERVERS: dict[str, tuple[Callable[..., Any], Callable[[], str | None]]] = {
    "redis": (RedisServer, lambda: shutil.which("redis-server")),
    "valkey": (ValkeyServer, find_valkey),
    "cluster": (RedisCluster, lambda: shutil.which("redis-server")),
    "valkey-cluster": (RedisCluster, find_valkey),
    "memcached": (MemcachedServer, lambda: shutil.which("memcached")),
    "postgresql": (PostgreSQLServer, find_postgresql),
}


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """Starts each server when the first test asks for it, and ends them all."""
    running: dict[str, Server | RedisCluster] = {}

    def start(name: str) -> Server | RedisCluster:
        if name not in running:
            kind, find = SERVERS[name]
            binary = find()
            if binary is None:
                pytest.skip(f"{name} is not installed")
            running[name] = kind(binary, tmp_path_factory.mktemp(name))
        return running[name]

    yield start
    for server in running.values():
        server.kill()


def lend(server: AnyServer) -> Iterator[AnyServer]:
    """One server lives as long as the session, but each test finds it empty and awake."""
    server.recover()
    yield server
    server.recover()


@pytest.fixture
def redis_server(start_server: StartServer) -> Iterator[RedisServer]:
    yield from lend(start_server("redis"))


@pytest.fixture
def valkey_server(start_server: StartServer) -> Iterator[ValkeyServer]:
    yield from lend(start_server("valkey"))


@pytest.fixture(params=["redis", "valkey"])
def redis_like(request: pytest.FixtureRequest, start_server: StartServer) -> Iterator[RedisServer]:
    """The test runs once with Redis and once with Valkey."""
    yield from lend(start_server(request.param))


@pytest.fixture
def redis_cluster(start_server: StartServer) -> Iterator[RedisCluster]:
    yield from lend(start_server("cluster"))


@pytest.fixture(params=["cluster", "valkey-cluster"])
def cluster_like(
    request: pytest.FixtureRequest, start_server: StartServer
) -> Iterator[RedisCluster]:
    """The test runs once with a cluster of Redis and once with one of Valkey."""
    yield from lend(start_server(request.param))


@pytest.fixture
def memcached_server(start_server: StartServer) -> Iterator[MemcachedServer]:
    yield from lend(start_server("memcached"))


@pytest.fixture
def postgresql_server(start_server: StartServer) -> Iterator[PostgreSQLServer]:
    yield from lend(start_server("postgresql"))


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file instead of memory, so that threads and other processes see what a test committed."""
    path = tmp_path_factory.mktemp("database") / "tests.sqlite3"
    connections["default"].settings_dict["TEST"]["NAME"] = str(path)


@pytest.fixture(scope="session", autouse=True)
def _permissions_stay() -> Iterator[None]:
    """Not made anew by each flush, after which they would be the same: most of what one costs."""
    kept = {"django_content_type", "auth_permission"}

    def others(style: Any, connection: Any, **options: Any) -> Any:
        tables = set(connection.introspection.django_table_names(only_existing=True)) - kept
        return connection.ops.sql_flush(style, sorted(tables), **options)

    with patch.multiple(flush, sql_flush=others, emit_post_migrate_signal=Mock()):
        yield


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """No test finds what another one counted, edited or logged."""
    forget_everything()
    yield
    forget_everything()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: some test always waits for something."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, rather than skip, what can't exist on an older Python or Django; and the long."""
    present = {"min_python": sys.version_info[:2], "min_django": django.VERSION[:2]}
    too_new = [
        item
        for item in items
        if any(
            mark.args > present[mark.name] for mark in item.iter_markers() if mark.name in present
        )
    ]
    long = [item for item in items if not LONG and item.get_closest_marker("long")]
    config.stash[left_out] = len(long)
    if too_new or long:
        unwanted = {*too_new, *long}
        config.hook.pytest_deselected(items=list(unwanted))
        items[:] = [item for item in items if item not in unwanted]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    long = terminalreporter.config.stash.get(left_out, 0)
    if long:
        terminalreporter.section(f"{long} tests that take long were left out")
        terminalreporter.line("RATELIMITS_LONG=1 pytest runs them too.")
    skipped = len(terminalreporter.stats.get("skipped", []))
    if NO_SKIPS and skipped:
        terminalreporter.section("skipped tests are failures here (RATELIMITS_NO_SKIPS)", red=True)
        for report in terminalreporter.stats["skipped"]:
            terminalreporter.line(f"SKIPPED {report.nodeid}: {report.longrepr[2]}", red=True)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Those who run tests for others leave out the same ones, and only they know how many."""
    node.config.stash[left_out] = getattr(node, "workeroutput", {}).get("left out", 0)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left out"] = session.config.stash.get(left_out, 0)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if NO_SKIPS and exitstatus == 0 and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
