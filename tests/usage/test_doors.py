"""A request is one request, whichever doors it passes and at whichever it is refused."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from ratelimits import usage
from tests.doors import make_plan, per_address
from tests.views import OURS, SERVERS, AnyClient

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.test_middleware_protect"),
    pytest.mark.usefixtures("fresh"),
]

VIEWS = {
    "the middleware": "/api/open",
    "a throttle": "/api/drf",
    "a throttle with a cost": "/api/costly",
    "a decorator": "/api/decorated",
    "a limit in code": "/api/code",
}


@SERVERS
@pytest.mark.parametrize("address_rate", ["100/d", "4/d"])
@pytest.mark.parametrize("url", VIEWS.values(), ids=VIEWS)
async def test_totals_are_of_requests(
    url: str, address_rate: str, caller: AnyClient, settings: Any
) -> None:
    """Refused by the first door (the address), or by the second one (the plan, or code)."""
    caller = AnyClient(caller.is_async)
    settings.RATELIMITS = {"PROTECT": ["/api/"], "TENANT": lambda request: "acme"}
    settings.MIDDLEWARE = [OURS]
    await sync_to_async(make_plan)("api 7/d")
    await sync_to_async(per_address)(address_rate)
    answers = await caller.statuses(10, url=url)
    usage.flush()
    hours = usage.totals().hours
    allowed, refused = answers.count(200), answers.count(429)
    assert (allowed, refused) != (10, 0)
    assert allowed + refused == 10
    assert sum(point.total.allowed for point in hours) == allowed
    assert sum(point.total.refused for point in hours) == refused
    (tenant,), (address,) = usage.recent(["acme"]), usage.recent(["127.0.0.1"], kind="address")
    both = tenant.plus(address)
    assert (both.allowed, both.refused) == (allowed, refused)
    # By a limit for each address nobody knows more of a caller than that.
    assert tenant.allowed == (0 if url == VIEWS["a limit in code"] else allowed)
