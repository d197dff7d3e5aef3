"""What a crowd does with refusals, and one call with waits that nobody means."""

from __future__ import annotations

import time
from uuid import uuid4

import pytest
from django.test import Client

from ratelimits.client import RetryLater, upstream
from ratelimits.effects import drive
from ratelimits.models import Upstream
from tests.client.vendor import Reply, Vendor
from tests.servers import RedisServer

from .crowds import Run, Sent, crowd, sent_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("rows")]

WORKERS, CALLS = 8, 64
# Seconds from a refusal on in which a process may still send what it began to send before it
# could know: as long as it may be held up on a busy machine.
HELD_UP = 0.5


def early(sent: list[Sent]) -> list[tuple[Sent, Sent]]:
    """Refusals, and requests that were sent before the time that they told."""
    return [
        (refused, other)
        for refused in sent
        for other in sent
        if refused.status == 429
        and _after(refused, other) < other.asked < refused.answered + refused.told
    ]


def _after(refused: Sent, other: Sent) -> float:
    """Since when the other one's worker knew of it."""
    return refused.answered + HELD_UP * (refused.worker != other.worker)


@pytest.mark.long
@pytest.mark.urls("tests.admin_site")
def test_a_limit_that_is_set_too_high(
    on_redis: RedisServer, vendor_url: str, admin_client: Client
) -> None:
    run = Run("too-high", "/bucket", f"caller-{uuid4()}", CALLS // WORKERS)
    sent = sent_of(crowd(on_redis, vendor_url, WORKERS, [run]))
    refused = [one for one in sent if one.status == 429]
    assert 0 < len(refused) <= 10
    assert len(sent) == CALLS + len(refused)
    assert early(sent) == []
    standing = drive(upstream(run.slug, run.name).gate().look())
    assert standing.refused == len(refused)
    assert standing.is_too_high
    row = Upstream.objects.get(slug=run.slug)
    page = admin_client.get(f"/admin/ratelimits/upstream/{row.pk}/change/").content.decode()
    assert "is 20 requests per second here, but answers of the API name less. Lower it." in page


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nobody sleeps in earnest."""
    waits: list[float] = []
    for place in ("gate", "sending"):
        monkeypatch.setattr(f"ratelimits.client.{place}.sleep", waits.append)
    return waits


@pytest.fixture
def impatient(on_redis: RedisServer) -> None:
    Upstream.objects.update(max_wait=5)


@pytest.mark.usefixtures("impatient")
def test_an_hour_is_not_slept(vendor: Vendor, slept: list[float]) -> None:
    vendor.will(Reply(429, {"Retry-After": "3600"}))
    with upstream("bucket", "key").session() as session:
        for _ in range(3):
            with pytest.raises(RetryLater) as caught:
                session.get(vendor.url, timeout=20)
            assert caught.value.delay > 3590
    # Who comes after the first one is told without asking the vendor.
    assert (slept, len(vendor.received)) == ([], 1)


NAMES = ["Retry-After", "X-RateLimit-Reset", "RateLimit-Reset", "X-Rate-Limit-Reset"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("ahead", [-3600, 0, 3, 3600])
@pytest.mark.parametrize("name", NAMES)
def test_a_moment_since_1970_is_no_wait_of_decades(
    vendor: Vendor, slept: list[float], name: str, ahead: int
) -> None:
    vendor.will(Reply(429, {name: f"{time.time() + ahead:.0f}"}))
    with upstream("bucket", "key").session() as session:
        try:
            assert session.get(vendor.url, timeout=20).status_code == 200
        except RetryLater as later:
            assert ahead - 60 < later.delay <= 3600 + 1
            assert ahead == 3600
    assert sum(slept) <= 5
    assert bool(slept) == (ahead < 3600)
