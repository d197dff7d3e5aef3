from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SERVERS
from tests.servers import RedisServer

from .serving import prepare


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """One of the test's own, which it may ruin."""
    binary = SERVERS["redis"][1]()
    if binary is None:
        pytest.skip("redis is not installed")
    (tmp_path / "redis").mkdir()
    server = RedisServer(binary, tmp_path / "redis")
    yield server
    server.kill()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the demo for gunicorn to begin with."""
    return prepare(tmp_path_factory.mktemp("demo"))
