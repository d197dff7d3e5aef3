"""The store goes away while several processes call a vendor."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.servers import RedisServer
from tests.waiting import wait_until

from .crowds import Run, crowd, sent_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("rows")]

WORKERS, CALLS = 4, 60


def calls_of(server: RedisServer) -> int:
    stats = server.client().info("commandstats")
    return int(stats.get("cmdstat_evalsha", {}).get("calls", 0))


@pytest.mark.parametrize(
    ("slug", "path"),
    [("window", "/sliding"), pytest.param("bucket", "/bucket", marks=pytest.mark.long)],
)
def test_each_process_goes_on_with_its_part(
    redis_server: RedisServer, vendor_url: str, slug: str, path: str
) -> None:
    redis_server.client().config_resetstat()

    def stop() -> None:
        wait_until(lambda: calls_of(redis_server) > CALLS / 3, "they call")
        redis_server.kill()

    run = Run(slug, path, f"caller-{uuid4()}", CALLS // WORKERS)
    limits = {"STORE_TIMEOUT": 1, "WORKERS": WORKERS}
    told = crowd(redis_server, vendor_url, WORKERS, [run], limits=limits, meanwhile=stop)
    refused = [one for one in sent_of(told) if one.status != 200]
    # Nobody hears of the others now, so that one of them may be late, and another one too early.
    assert len(refused) <= 2
