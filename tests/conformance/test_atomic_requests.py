"""With ATOMIC_REQUESTS, counts are no part of a request's transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.processes import run_processes

from .atomic_views import ask, prepare, used_and_written
from .shared import settings_for

VIEWS = "tests.conformance.atomic_views"


@pytest.fixture(params=["postgresql", "sqlite"])
def project(request: pytest.FixtureRequest, start_server: Any, tmp_path: Path) -> dict[str, Any]:
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
    run_processes(prepare, 1, settings=settings)
    return settings


def test_nobody_waits_for_the_view_of_another(project: dict[str, Any]) -> None:
    """Two requests of one tenant: the second comes and goes while the first is in its view."""
    queries = ["name=slow&seconds=4", ""]
    slow, quick = run_processes(ask, 2, [0.0, 1.0], queries, settings=project)
    assert slow >= 4
    assert quick < 2
    (found,) = run_processes(used_and_written, 1, settings=project)
    assert found == [6, ["slow"]]


def test_a_request_that_is_rolled_back_stays_charged(project: dict[str, Any]) -> None:
    run_processes(ask, 1, [0.0], ["name=kept"], settings=project)
    run_processes(ask, 1, [0.0], ["name=lost&broken"], settings=project)
    (found,) = run_processes(used_and_written, 1, settings=project)
    assert found == [6, ["kept"]]
