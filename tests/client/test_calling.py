"""The transports before the real gate: rows, a store, and clocks."""

from __future__ import annotations

import time

import httpx
import pytest

from ratelimits.client import NeverPasses, RetryLater, UnknownUpstream, upstream
from ratelimits.effects import drive
from ratelimits.models import Upstream
from tests.client.vendor import Reply, Vendor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def row() -> Upstream:
    row = Upstream.objects.create(slug="vendor", guard=0, max_wait=5)
    row.limits.create(name="calls", rate="10/s", burst=2, kind="bucket")
    return row


def test_nobody_has_added_it_yet(vendor: Vendor) -> None:
    with upstream("vendor").session() as session, pytest.raises(UnknownUpstream, match="admin"):
        session.get(vendor.url, timeout=20)
    assert vendor.received == []


@pytest.mark.usefixtures("row")
def test_a_call_that_costs_more_than_there_ever_is(vendor: Vendor) -> None:
    with upstream("vendor").session(cost=3) as session, pytest.raises(NeverPasses):
        session.get(vendor.url, timeout=20)
    assert vendor.received == []


def test_a_limit_of_our_own_is_obeyed_before_anybody_refuses(row: Upstream, vendor: Vendor) -> None:
    row.limits.create(name="hourly", rate="1/h", kind="window")
    with upstream("vendor", "key").session() as session:
        assert session.get(vendor.url, timeout=20).status_code == 200
        with pytest.raises(RetryLater) as caught:
            session.get(vendor.url, timeout=20)
    assert caught.value.limit == "hourly"
    assert 3500 < caught.value.delay <= 3601
    assert (caught.value.response, len(vendor.received)) == (None, 1)


def test_a_slots_error_gets_out_though_nobody_can_be_told(row: Upstream) -> None:
    response = httpx.Response(429, headers={"Retry-After": "5"}, request=httpx.Request("GET", ""))
    error = httpx.HTTPStatusError("", request=response.request, response=response)
    with pytest.raises(httpx.HTTPStatusError) as caught, upstream("vendor", "key").slot():
        row.delete()
        raise error
    assert caught.value is error


async def test_an_async_slots_error_gets_out_though_nobody_can_be_told(row: Upstream) -> None:
    response = httpx.Response(429, headers={"Retry-After": "5"}, request=httpx.Request("GET", ""))
    error = httpx.HTTPStatusError("", request=response.request, response=response)
    with pytest.raises(httpx.HTTPStatusError) as caught:
        async with upstream("vendor", "key").slot():
            await row.adelete()
            raise error
    assert caught.value is error


def test_an_answer_gets_there_though_nobody_can_be_told(row: Upstream) -> None:
    def deleted(request: httpx.Request) -> httpx.Response:
        row.delete()
        return httpx.Response(503, headers={"Retry-After": "5"})

    transport = upstream("vendor", "key").transport(httpx.MockTransport(deleted))
    with httpx.Client(transport=transport) as client:
        assert client.post("http://x").status_code == 503


@pytest.mark.usefixtures("row")
def test_nobody_sends_before_the_told_time(vendor: Vendor) -> None:
    vendor.will(Reply(429, {"Retry-After-Ms": "300"}))
    with upstream("vendor", "key").session() as session:
        assert session.post(vendor.url, data=b"x", timeout=20).status_code == 200
    refused, good = vendor.received
    assert good.at - refused.at >= 0.3
    standing = drive(upstream("vendor", "key").gate().look())
    assert standing.refused == 1


@pytest.mark.usefixtures("row")
async def test_calls_and_slots_stand_in_one_line(vendor: Vendor) -> None:
    api = upstream("vendor", "key")
    inner = httpx.AsyncHTTPTransport(verify=False)
    async with httpx.AsyncClient(transport=api.async_transport(inner)) as client:
        async with api.slot():
            first = time.monotonic()
        for _ in range(3):
            assert (await client.get(vendor.url)).status_code == 200
    async with api.slot():
        last = time.monotonic()
    # Two at once, then one each tenth of a second, less what the first one was late.
    assert last - first >= 0.29


@pytest.mark.usefixtures("row")
def test_a_block_is_everybodys_who_has_the_same_credential(vendor: Vendor) -> None:
    vendor.will(Reply(429, {"Retry-After": "3600"}))
    with upstream("vendor", "key").session() as session, pytest.raises(RetryLater):
        session.get(vendor.url, timeout=20)
    with pytest.raises(RetryLater) as caught, upstream("vendor", "key").slot():
        pytest.fail("it entered")
    assert 3590 < caught.value.delay <= 3601
    assert "429, Retry-After: 3600" in caught.value.reason
    with upstream("vendor", "another").slot():
        pass


@pytest.mark.usefixtures("row")
def test_what_an_answer_says_is_left_is_kept_for_operators(vendor: Vendor) -> None:
    vendor.will(Reply(headers={"X-RateLimit-Remaining": "7", "Set-Cookie": "secret"}))
    api = upstream("vendor", "key")
    with api.session() as session:
        session.get(vendor.url, timeout=20)
        session.get(vendor.url, timeout=20)
    assert drive(api.gate().look()).seen == "x-ratelimit-remaining: 7"
