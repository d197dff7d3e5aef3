"""What a refusal was about is read back from its receipt, and from nothing else."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client, override_settings
from django.urls import path
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.response import Response
from rest_framework.views import APIView

from ratelimits import limiter
from ratelimits.decorators import ratelimit
from ratelimits.exceptions import RateLimited
from ratelimits.limits import Decision, Occasion
from ratelimits.publishing.problems import problem_of
from ratelimits.receipts import KEPT, NotAReceipt, Receipt, read, receipt_of, values
from ratelimits.receipts.urns import urn_of
from ratelimits.sealing import seal
from ratelimits.throttling import PlanRateThrottle
from tests.decisions import decision, limit, violated
from tests.doors import for_everyone, make_plan, problem
from tests.settings import redis_caches

pytestmark = pytest.mark.urls(__name__)
# RFC 8141, section 2, with the namespace of RFC 9562.
URN = re.compile(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\?=[\w.~/?-]+", re.ASCII)
OCCASION = Occasion("user:7", "192.0.2.1", "search", "/api/search", True)


def refused(**options: Any) -> Decision:
    of = limit("requests", "100/m", burst=20)
    return decision(violated(of, 5.5, remaining=2, cost=3), **{"occasion": OCCASION, **options})


def test_what_it_tells() -> None:
    with freeze_time("2026-11-30 12:00:00.25"):
        receipt = read(receipt_of(refused()))
    assert receipt == Receipt(
        at=datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=timezone.utc),
        status=429,
        occasion=OCCASION,
        cost=3,
        remaining=2,
        retry_after=6,
        limit="requests",
        rate="100/m",
        burst=20,
        algorithm="token_bucket",
        per="tenant",
    )


@pytest.mark.parametrize(
    ("of", "told"),
    [
        (decision(violated(limit(), None, cost=101)), (429, 101, None, "default", None)),
        (decision(violated(limit(per="everyone"), 2)), (503, 1, 2, "default", None)),
        (decision(cost=4, unavailable=True), (503, 4, 1, "", None)),
        (decision(violated(limit(rate="0/m"), None)), (429, 1, None, "default", None)),
        (
            decision(violated(limit(algorithm="fixed_window"), 9e9)),
            (429, 1, 2**32 - 1, "default", None),
        ),
    ],
)
def test_kinds_of_refusals(of: Decision, told: tuple[Any, ...]) -> None:
    receipt = read(receipt_of(of))
    assert receipt.occasion == Occasion()
    assert (receipt.status, receipt.cost, receipt.retry_after) == told[:3]
    assert (receipt.limit, receipt.burst) == told[3:]


def test_it_is_a_uri_and_unique() -> None:
    """RFC 9457 wants a URI, RFC 9562 a UUID that says it is of a maker's own kind."""
    receipts = [receipt_of(refused()) for _ in range(50)]
    with freeze_time():
        receipts += [receipt_of(refused()) for _ in range(50)]
    uuids = set()
    for receipt in receipts:
        assert URN.fullmatch(receipt)
        assert urlsplit(receipt).scheme == "urn"
        uuid = UUID(receipt.removeprefix("urn:uuid:").partition("?")[0])
        assert (uuid.version, uuid.variant) == (8, "specified in RFC 4122")
        uuids.add(uuid)
    assert len(uuids) == 100


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=300))
def test_any_texts(tenant: str, scope: str, where: str) -> None:
    receipt = receipt_of(refused(occasion=Occasion(tenant, "", scope, where)))
    assert len(receipt) < 500
    occasion = read(receipt).occasion
    for told, meant in (
        (occasion.tenant or "", tenant),
        (occasion.scope, scope),
        (occasion.path, where),
    ):
        assert told == meant or (told.endswith("…") and meant.startswith(told[:-1]))


def test_what_is_no_text() -> None:
    assert read(receipt_of(refused(occasion=Occasion("a\ud800")))).occasion.tenant == "a?"


@pytest.mark.parametrize("character", ["a", "ü", "語", "😀"])
def test_the_longest(character: str) -> None:
    long = character * 1000
    of = limit(long, "999999999999/366d", burst=2**40)
    receipt = receipt_of(decision(violated(of), occasion=Occasion(long, "f" * 44, long, long)))
    assert len(receipt) < 500
    told = read(receipt)
    for text in (told.occasion.tenant, told.occasion.scope, told.occasion.path, told.limit):
        assert text is not None and set(text.removesuffix("…")) == {character}
    assert (told.rate, told.burst) == ("999999999999/366d", 2**40)


def test_nobody_else_can_read_it() -> None:
    receipts = [receipt_of(refused(occasion=Occasion("a" * 80))) for _ in range(2)]
    bodies = [receipt.partition("?=")[2] for receipt in receipts]
    # Nothing of one tenant's receipts is the same, but by chance.
    assert sum(a == b for a, b in zip(*bodies, strict=True)) < 20


def test_a_changed_one_is_refused() -> None:
    receipt = receipt_of(refused())
    for place, character in enumerate(receipt[9:], 9):
        if character not in "-?=":
            other = "1" if character == "0" else "0"
            with pytest.raises(NotAReceipt, match=r"not ours|only the beginning|no receipt"):
                read(receipt[:place] + other + receipt[place + 1 :])


def test_no_part_of_it_is_enough() -> None:
    receipt = receipt_of(refused())
    for end in range(len(receipt)):
        with pytest.raises(NotAReceipt):
            read(receipt[:end])
    with pytest.raises(NotAReceipt, match="only the beginning"):
        read(receipt.partition("?")[0])


@pytest.mark.parametrize("text", ["", "  ", "Quota Exceeded", "urn:uuid:", "ünïcode\0"])
def test_no_receipt_at_all(text: str) -> None:
    with pytest.raises(NotAReceipt, match="no receipt in this"):
        read(text)


@pytest.mark.parametrize("rest", ["A", "AAAA", "_" * 400, "A" * 9999])
def test_made_up(rest: str) -> None:
    with pytest.raises(NotAReceipt, match="not ours"):
        read(f"urn:uuid:00000000-0000-8000-8000-000000000000?={rest}")


@pytest.mark.parametrize(
    "others", [{"RATELIMITS": {"KEY_SECRET": "other"}}, {"SECRET_KEY": "other"}]
)
def test_another_secret(others: dict[str, Any]) -> None:
    receipt = receipt_of(refused())
    with override_settings(**others), pytest.raises(NotAReceipt, match="another secret"):
        read(receipt)


def test_what_was_sealed_for_something_else() -> None:
    with pytest.raises(NotAReceipt, match="not ours"):
        read(urn_of(seal(values.pack(refused()), "usage")))


def test_another_version() -> None:
    packed = values.pack(refused())
    with pytest.raises(NotAReceipt, match="another release"):
        read(urn_of(seal(b"\x02" + packed[1:], "receipts")))


def test_too_old() -> None:
    with freeze_time("2026-11-01") as clock:
        receipt = receipt_of(refused())
        clock.tick(KEPT)
        assert read(receipt).limit == "requests"
        clock.tick(timedelta(seconds=1))
        with pytest.raises(NotAReceipt, match="too old: it was made on 2026-11-01"):
            read(receipt)


def test_however_it_is_pasted() -> None:
    receipt = receipt_of(refused())
    body = json.dumps({"status": 429, "instance": receipt, "cost": 1}, indent=2)
    wrapped = "\n> ".join(receipt[n : n + 60] for n in range(0, len(receipt), 60))
    pasted = [
        receipt,
        f'  "{receipt}",\n',
        f"instance: {receipt} and nothing else helped",
        f"<{receipt}>",
        body,
        json.dumps(body),
        f"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 6\r\n\r\n{body}",
        wrapped.replace("> ", ""),
        wrapped,
        receipt.replace("?=", "\\u003F\\u003D"),
        receipt.replace("?=", "?=3D"),
        quote(receipt),
        receipt.replace("=", "&#x3D;"),
        "urn:uuid:00000000-0000-8000-8000-000000000000?=AAAA " + receipt,
        receipt[:45].upper() + receipt[45:],
        "\u200b" + receipt[:99] + "\u200b" + receipt[99:],
    ]
    for text in pasted:
        assert read(text).occasion == OCCASION


def test_what_looks_escaped_is_read_as_it_is() -> None:
    receipts = iter(lambda: receipt_of(refused()), None)
    receipt = next(text for text in receipts if text and text[47:49].lower() == "3d")
    assert read(receipt).occasion == OCCASION


class Search(APIView):
    throttle_classes = [PlanRateThrottle]
    throttle_scope = "search"

    def get(self, request: Any) -> Response:
        return Response({})


def raising(request: HttpRequest) -> HttpResponse:
    raise RateLimited(limiter.take(request, scope="search"))


async def asynchronous(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def own(request: HttpRequest, decision: Decision) -> HttpResponse:
    return JsonResponse(problem_of(decision), status=429)


urlpatterns = [
    path("drf", Search.as_view()),
    path("plan", ratelimit(scope="search")(lambda request: HttpResponse())),
    path("async", ratelimit(scope="search")(asynchronous)),
    path("code", ratelimit("0/m", by="tenant", scope="search")(lambda request: HttpResponse())),
    path("raising", raising),
    path("protected", lambda request: HttpResponse()),
]


@pytest.mark.django_db
@pytest.mark.parametrize("door", ["drf", "plan", "async", "code", "raising", "protected"])
@pytest.mark.parametrize("tenant", ["acme", None])
def test_doors(client: Client, settings: Any, door: str, tenant: str | None) -> None:
    settings.RATELIMITS = {"TENANT": lambda request: tenant, "PROTECT": ["/protected"]}
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "ratelimits.middleware.RateLimitMiddleware"]
    make_plan("api 0/m")
    receipt = read(problem(client.get(f"/{door}?secret=1", REMOTE_ADDR="192.0.2.9"))["instance"])
    scope = "" if door == "protected" else "search"
    assert receipt.occasion == Occasion(tenant, "192.0.2.9", scope, f"/{door}")
    assert receipt.per == ("tenant" if tenant else "address")
    assert receipt.rate == "0/m"


@pytest.mark.django_db
def test_the_projects_own_response(client: Client, settings: Any) -> None:
    settings.RATELIMITS = {"RESPONSE": own}
    make_plan("api 0/m")
    receipt = read(client.get("/plan").json()["instance"])
    assert receipt.occasion == Occasion(None, "127.0.0.1", "search", "/plan")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("take", [limiter.take, async_to_sync(limiter.atake), limiter.peek])
def test_functions(take: Any) -> None:
    make_plan("api 0/m")
    receipt = read(receipt_of(take("acme", scope="search", cost=2)))
    assert receipt.occasion == Occasion("acme", "", "search", "")
    assert receipt.cost == 2


@pytest.fixture
def away(settings: Any, fresh: None) -> None:
    settings.CACHES = redis_caches("redis://127.0.0.1:1/0")


@pytest.mark.django_db
@pytest.mark.usefixtures("away")
def test_the_process_decides(client: Client) -> None:
    make_plan("api 0/d")
    receipt = read(problem(client.get("/plan"))["instance"])
    assert (receipt.limit, receipt.occasion.local) == ("api", True)


@pytest.mark.django_db
@pytest.mark.usefixtures("away")
def test_the_store_decides_by_being_away(client: Client, settings: Any) -> None:
    settings.RATELIMITS = {"STORE_FAILURE": "deny"}
    make_plan("api 1/d")
    receipt = read(problem(client.get("/plan"))["instance"])
    assert (receipt.status, receipt.limit, receipt.occasion.path) == (503, "", "/plan")


@pytest.mark.django_db
def test_the_whole_service(client: Client) -> None:
    """The caller is not told what everybody may take; whoever reads the receipt is."""
    make_plan("api 10/d")
    for_everyone("0/s")
    body = problem(client.get("/plan"))
    assert "limit" not in body
    receipt = read(body["instance"])
    assert (receipt.status, receipt.per, receipt.rate) == (503, "everyone", "0/s")
