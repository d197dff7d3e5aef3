"""With ATOMIC_REQUESTS, counts are no part of a request's transaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import Crowd, crowd

from .atomic_views import ask, prepare, used_and_written
from .shared import settings_for

VIEWS = "tests.conformance.atomic_views"


@pytest.fixture(params=["postgresql", "sqlite"])
def processes(request: pytest.FixtureRequest, start_server: Any, tmp_path: Path) -> Iterator[Crowd]:
    """Two workers of the project."""
    settings = settings_for(request.param, start_server, tmp_path, ATOMIC_REQUESTS=True)
    settings["RATELIMITS"] = {**settings["RATELIMITS"], "TENANT": f"{VIEWS}.tenant_of"}
    settings["ROOT_URLCONF"] = VIEWS
    if request.param == "postgresql":
        # A schema of its own, since the database is everybody's.
        server = start_server("postgresql")
        with server.connect() as connection:
            connection.execute("DROP SCHEMA IF EXISTS shop CASCADE")
            connection.execute("CREATE SCHEMA shop")
        settings["DATABASES"]["default"]["OPTIONS"] = {"options": "-c search_path=shop"}
    with crowd(2, settings) as processes:
        processes.run(prepare, count=1)
        yield processes


def test_nobody_waits_for_the_view_of_another(processes: Crowd) -> None:
    """Two requests of one tenant: the second comes and goes while the first is in its view."""
    queries = ["name=slow&seconds=4", ""]
    slow, quick = processes.run(ask, [0.0, 1.0], queries)
    assert slow >= 4
    assert quick < 2
    (found,) = processes.run(used_and_written, count=1)
    assert found == [6, ["slow"]]


def test_a_request_that_is_rolled_back_stays_charged(processes: Crowd) -> None:
    processes.run(ask, [0.0], ["name=kept"], count=1)
    processes.run(ask, [0.0], ["name=lost&broken"], count=1)
    (found,) = processes.run(used_and_written, count=1)
    assert found == [6, ["kept"]]
