"""Calls of one process and of several to a vendor who counts: as many are sent as have to pass."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.servers import RedisServer

from .crowds import Run, call, crowd, sent_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("rows")]

CALLS = 40
# Paths of the vendor, and the kind of limit that calls to it have here.
KINDS = {"/bucket": "bucket", "/fixed": "window", "/sliding": "window"}


def runs(workers: int, library: str) -> list[Run]:
    return [
        Run(slug, path, f"caller-{uuid4()}", CALLS // workers, library)
        for path, slug in KINDS.items()
    ]


def check(told: list[dict[str, Any]]) -> None:
    for place, path in enumerate(KINDS):
        sent = sent_of(told, place)
        assert [one.status for one in sent] == [200] * CALLS, path
        # None can be done before, since 10 pass at once, and then 10 in each second.
        assert sent[-1].arrived - sent[0].arrived >= 3


def test_one_process_sends_what_has_to_pass(on_redis: RedisServer, vendor_url: str) -> None:
    check([call(0, vendor_url, runs(1, "httpx"))])


def test_eight_processes_do_as_well_and_wait_for_nothing(
    redis_server: RedisServer, vendor_url: str
) -> None:
    redis_server.client().config_resetstat()
    told = crowd(redis_server, vendor_url, 8, runs(8, "requests"))
    check(told)
    # One to book a moment, and one to see that it is still good.
    commands = redis_server.client().info("commandstats")
    assert commands["cmdstat_evalsha"]["calls"] <= 2 * CALLS * len(KINDS)
    # Together, since one that began first may have found room for all of its calls at once.
    cpu, seconds = (sum(worker[name] for worker in told) for name in ("cpu", "seconds"))
    assert cpu < 0.1 * seconds


@pytest.mark.long
@pytest.mark.parametrize("library", ["requests", "httpx"])
@pytest.mark.parametrize("workers", [1, 8])
def test_three_runs_in_a_row(
    on_redis: RedisServer, vendor_url: str, workers: int, library: str
) -> None:
    for _ in range(3):
        check(crowd(on_redis, vendor_url, workers, runs(workers, library)))
