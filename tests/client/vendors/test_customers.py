"""Customers who share one credential, one of whom wants far more than there is."""

from __future__ import annotations

import asyncio
import time
from uuid import uuid4

import httpx
import pytest

from ratelimits.client import upstream
from ratelimits.client.api import Api
from ratelimits.effects import adrive
from ratelimits.models import Upstream

from .crowds import TIMEOUT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("on_redis")]

MANY, FEW = 1000, 5
# Units per second that each customer has.
SHARE = 5


@pytest.fixture
def row() -> Upstream:
    row = Upstream.objects.create(slug="shared", max_wait=3600)
    row.limits.create(name="calls", rate="10/s", kind="bucket")
    row.limits.create(name="share", rate=f"{SHARE}/s", kind="bucket", per="tenant")
    return row


async def wait_in_line(api: Api) -> None:
    async with api.slot():
        pass


async def booked_ahead(api: Api) -> float:
    """Seconds until nothing of a customer's share is booked any more."""
    standing = await adrive(api.gate().look())
    return next(pace.free_in for pace in standing.paces if pace.pace.name == "share")


@pytest.mark.usefixtures("row")
async def test_a_thousand_calls_of_one_hold_up_nobody_else(vendor_url: str) -> None:
    credential = f"caller-{uuid4()}"
    greedy, modest = (upstream("shared", credential, name) for name in ("greedy", "modest"))
    came = time.monotonic()
    waiting = [asyncio.create_task(wait_in_line(greedy)) for _ in range(MANY)]
    # Some seconds of what they booked may be over before the last of them came to book.
    while await booked_ahead(greedy) + (time.monotonic() - came) < 0.9 * MANY / SHARE:
        assert time.monotonic() - came < TIMEOUT
        # Whoever was told an error is not in the line.
        assert not any(task.done() and task.exception() for task in waiting)
        await asyncio.sleep(0.05)
    began = time.monotonic()
    transport = modest.async_transport(httpx.AsyncHTTPTransport(verify=False))
    async with httpx.AsyncClient(transport=transport, timeout=TIMEOUT) as client:
        for _ in range(FEW):
            answer = await client.get(f"{vendor_url}/bucket", headers={"X-API-Key": credential})
            assert answer.status_code == 200
    # Their own share lets them leave in no time; the line of the others takes minutes.
    assert time.monotonic() - began < 0.1 * MANY / SHARE
    still_waiting = sum(not task.done() for task in waiting)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert still_waiting > 0.5 * MANY
