"""Whose bucket it is: every kind of `by`, and what a rate, a cost or a `by` may be asked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.test import Client
from django.urls import path

from ratelimits.decorators import ratelimit
from ratelimits.rates import Rate
from tests.doors import PREFLIGHT, is_silent, left, make_plan, request
from tests.views import KINDS, SERVERS, AnyClient, hello, limited_view

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]
urlpatterns: list[Any] = []


def serve(view: Any) -> None:
    urlpatterns[:] = [path("view", view)]


def passes(view: Any, **options: Any) -> bool:
    response = view(request(**options))
    assert response.status_code in (200, 429)
    return bool(response.status_code == 200)


@pytest.mark.parametrize("by", ["ip", "user", "tenant", "header:X-Key", "field:name"])
def test_callers_of_whom_nothing_is_known_count_by_address(by: str) -> None:
    """Cases 10 and 12: also without request.user."""
    view = ratelimit("1/d", by=by)(hello)
    assert passes(view, REMOTE_ADDR="192.0.2.1")
    assert not passes(view, REMOTE_ADDR="192.0.2.1")
    assert passes(view, REMOTE_ADDR="192.0.2.2")


@pytest.mark.parametrize(
    ("addresses", "passing"),
    [
        (["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"], [True, False, True]),
        (
            ["::ffff:192.0.2.1", "::ffff:198.51.100.2", "192.0.2.1", "::ffff:c000:201"],
            [True, True, False, False],
        ),
    ],
    ids=["prefix", "mapped"],
)
def test_addresses(addresses: list[str], passing: list[bool]) -> None:
    """Cases 5 and 6."""
    view = ratelimit("1/d", by="ip")(hello)
    assert [passes(view, REMOTE_ADDR=address) for address in addresses] == passing


def test_a_header_that_any_caller_can_write_is_no_address() -> None:
    """Case 2."""
    view = ratelimit("5/d", by="ip")(hello)
    answers = [
        passes(view, REMOTE_ADDR="198.51.100.7", HTTP_X_FORWARDED_FOR=f"203.0.113.{i}")
        for i in range(10)
    ]
    assert answers == [True] * 5 + [False] * 5


@KINDS
@SERVERS
@pytest.mark.parametrize("by", ["user", "tenant"])
async def test_users(by: str, is_async: bool, caller: AnyClient) -> None:
    """By the session, which is read in a thread."""
    serve(limited_view("function", ratelimit("1/d", by=by), is_async=is_async))
    for name in ("ann", "bob"):
        await caller.client.aforce_login(await User.objects.acreate(username=name))
        assert await caller.statuses(2) == [200, 429]


@pytest.mark.parametrize("header", ["X-Key", "x-key", "Content-Type", "Host"])
def test_headers(header: str) -> None:
    """Also those that the server's protocol knows by other names."""
    view = ratelimit("1/d", by=f"header:{header}")(hello)
    name = {"content-type": "CONTENT_TYPE"}.get(
        header.lower(), "HTTP_" + header.upper().replace("-", "_")
    )
    assert passes(view, **{name: "one"})
    assert passes(view, **{name: "two"})
    assert not passes(view, **{name: "one"}, REMOTE_ADDR="192.0.2.77")


def test_an_empty_header_is_none() -> None:
    """Case 12: no bucket that all such callers share."""
    view = ratelimit("1/d", by="header:X-Key")(hello)
    assert passes(view, HTTP_X_KEY="", REMOTE_ADDR="192.0.2.1")
    assert passes(view, HTTP_X_KEY="", REMOTE_ADDR="192.0.2.2")
    assert not passes(view, REMOTE_ADDR="192.0.2.1")


# What may be asked.


def by_query(request: HttpRequest) -> str | None:
    return request.GET.get("who")


async def by_query_later(request: HttpRequest) -> str | None:
    return request.GET.get("who")


def test_an_empty_name_is_what_is_missing() -> None:
    """And not a caller whom all share."""
    view = ratelimit("1/d", by=by_query)(hello)
    assert passes(view, url="/?who=", REMOTE_ADDR="192.0.2.1")
    assert not passes(view, url="/?who=", REMOTE_ADDR="192.0.2.1")
    assert passes(view, url="/?who=", REMOTE_ADDR="192.0.2.2")


def by_row(request: HttpRequest) -> str:
    return str(User.objects.filter(username=request.GET.get("who")).count())


@KINDS
@SERVERS
@pytest.mark.parametrize("by", [by_query, by_query_later])
async def test_a_callable_names_the_caller(by: Any, is_async: bool, caller: AnyClient) -> None:
    """Case 10: None does not limit."""
    serve(limited_view("function", ratelimit("1/d", by=by), is_async=is_async))
    for who in ("ann", "bob"):
        assert await caller.statuses(2, url=f"/view?who={who}") == [200, 429]
    assert await caller.statuses(3) == [200, 200, 200]
    assert is_silent(await caller.get())


@KINDS
@SERVERS
async def test_a_callable_may_query_the_database(is_async: bool, caller: AnyClient) -> None:
    """Case 65."""

    def rate(request: HttpRequest) -> str:
        return f"{1 + User.objects.count()}/d"

    def cost(request: HttpRequest) -> int:
        return 1 + User.objects.count()

    limit = ratelimit(rate, by=by_row, cost=cost)
    serve(limited_view("function", limit, is_async=is_async))
    assert await caller.statuses(2) == [200, 429]


async def later(request: HttpRequest) -> Any:
    return int(request.GET["cost"])


@KINDS
@SERVERS
async def test_async_callables(is_async: bool, caller: AnyClient) -> None:
    async def rate(request: HttpRequest) -> str:
        return "10/d"

    serve(limited_view("function", ratelimit(rate, by="ip", cost=later), is_async=is_async))
    assert list(left(await caller.get("/view?cost=7")).values()) == [3]
    assert (await caller.get("/view?cost=4")).status_code == 429


@pytest.mark.parametrize(
    "rate",
    [None, "unlimited", Rate(None), lambda request: None, lambda request: "unlimited"],
    ids=["None", "unlimited", "Rate", "callable None", "callable unlimited"],
)
def test_no_limit(rate: Any) -> None:
    """Case 16."""
    view = ratelimit(rate, by="ip")(hello)
    answers = [view(request()) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert all(map(is_silent, answers))


@pytest.mark.parametrize(
    "rate", ["0/d", Rate(0, 60), lambda request: Rate(0, 60)], ids=["text", "Rate", "callable"]
)
def test_always_refused(rate: Any) -> None:
    """Case 16."""
    response = ratelimit(rate, by="ip", name="none")(hello)(request())
    assert response.status_code == 429
    assert json.loads(response.content)["violated-policies"] == ["none"]
    assert "Retry-After" not in response.headers


def test_each_caller_at_the_rate_that_a_callable_gives() -> None:
    def rate(request: HttpRequest) -> Any:
        return Rate(int(request.GET["quota"]), 86400)

    view = ratelimit(rate, by=lambda request: request.GET["quota"])(hello)
    for quota in (1, 3):
        answers = [passes(view, url=f"/?quota={quota}") for _ in range(quota + 1)]
        assert answers == [True] * quota + [False]


def test_a_callable_rate_that_is_none_such_is_an_error() -> None:
    with pytest.raises(ValueError, match='"ten" is not a rate'):
        ratelimit(lambda request: "ten", by="ip")(hello)(request())
    with pytest.raises(ValueError, match="Only a token bucket"):
        ratelimit(lambda request: "5/m", by="ip", burst=3, algorithm="fixed_window")(hello)(
            request()
        )


@pytest.mark.parametrize("cost", [-5, 1.5, None, "3"])
def test_a_callable_cost_that_is_none_such_takes_nothing(cost: Any) -> None:
    """Also if another limit of the view costs more."""
    costs = iter([cost, 1])
    upper = ratelimit("5/d", by="ip", name="upper", cost=3)
    view = upper(ratelimit("5/d", by="ip", name="lower", cost=lambda request: next(costs))(hello))
    with pytest.raises(ValueError, match="whole number"):
        view(request())
    assert left(view(request())) == {"upper": 2, "lower": 4}


def test_a_cost_above_the_burst_can_never_pass() -> None:
    """Case 34: and takes nothing."""
    costs = iter([16, 1])
    view = ratelimit("10/d", by="ip", cost=lambda request: next(costs))(hello)
    first, second = view(request()), view(request())
    assert first.status_code == 429
    assert "Retry-After" not in first.headers
    assert json.loads(first.content)["retryable"] is False
    assert list(left(second).values()) == [9]


@pytest.mark.parametrize("methods", [["POST"], "POST", ("post",), ["POST", "PUT"]])
def test_only_some_methods(methods: Any) -> None:
    view = ratelimit("1/d", by="ip", methods=methods)(hello)
    assert passes(view, method="post")
    assert not passes(view, method="post")
    assert passes(view)
    assert is_silent(view(request()))


@pytest.mark.parametrize("methods", [["GET"], ["GET", "HEAD"], None])
def test_head_counts_as_get(methods: Any) -> None:
    """Case 62."""
    view = ratelimit("1/d", by="ip", methods=methods)(hello)
    assert passes(view)
    assert not passes(view, method="head")


@pytest.mark.parametrize("by", ["tenant", "user", "header:Origin", by_query, "plan"])
def test_preflights_are_charged_to_nobody(by: Any) -> None:
    """Rule 16."""
    make_plan("api 1/d")
    view = ratelimit()(hello) if by == "plan" else ratelimit("1/d", by=by)(hello)
    for _ in range(3):
        response = view(request("options", "/?who=ann", **PREFLIGHT))
        assert response.status_code == 200
        assert is_silent(response)
    assert passes(view, url="/?who=ann")
    assert not passes(view, url="/?who=ann")


def test_preflights_count_by_address() -> None:
    view = ratelimit("1/d", by="ip")(hello)
    assert passes(view, method="options", **PREFLIGHT)
    assert not passes(view, method="options", **PREFLIGHT)


def exempt_ann(request: HttpRequest) -> bool:
    return User.objects.filter(username=request.GET.get("who", "")).exists()


@KINDS
@SERVERS
@pytest.mark.parametrize("by", ["ip", "field:name", "plan"])
async def test_exempt_callers(by: str, is_async: bool, caller: AnyClient, settings: Any) -> None:
    """EXEMPT may query the database, whatever the limit itself looks at."""
    settings.RATELIMITS = {"EXEMPT": exempt_ann}
    await sync_to_async(make_plan)("api 1/d")
    await User.objects.acreate(username="ann")
    limit = ratelimit() if by == "plan" else ratelimit("1/d", by=by)
    serve(limited_view("function", limit, is_async=is_async))
    assert await caller.statuses(3, url="/view?who=ann") == [200] * 3
    assert is_silent(await caller.get("/view?who=ann"))
    assert await caller.statuses(2) == [200, 429]


def test_ip_limit_touches_no_session(client: Client) -> None:
    """Case 67: no query for it, and a page that shared caches may keep."""
    client.force_login(User.objects.create(username="ann"))
    serve(ratelimit("5/d", by="ip")(hello))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "django.contrib.sessions.backends.db.SessionStore.load",
            lambda self: pytest.fail("the session was read"),
        )
        response = client.get("/view")
    assert response.status_code == 200
    assert "Vary" not in response.headers


def test_modes(settings: Any) -> None:
    shadow = ratelimit("0/d", by="ip", mode="shadow")(hello)
    assert passes(shadow)
    assert is_silent(shadow(request()))
    off = ratelimit("0/d", by="ip", mode="off")(hello)
    assert passes(off)
    enforced = ratelimit("0/d", by="ip")(hello)
    assert not passes(enforced)
    for mode in ("shadow", "off"):
        settings.RATELIMITS = {"MODE": mode}
        response = enforced(request())
        assert response.status_code == 200
        assert is_silent(response)


def test_burst_and_algorithm() -> None:
    view = ratelimit("1/d", by="ip", burst=3)(hello)
    assert [passes(view) for _ in range(4)] == [True] * 3 + [False]
    window = ratelimit("2/month", by="ip", algorithm="fixed_window")(hello)
    assert [passes(window) for _ in range(3)] == [True, True, False]


def test_no_secret_is_published(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """Case 9."""
    serve(ratelimit("1/d", by="header:X-API-Key")(hello))
    secret = "sk_live_123"
    answers = [client.get("/view", headers={"X-API-Key": secret}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    for answer in answers:
        assert secret not in f"{answer.headers} {answer.content!r}"
    assert secret not in caplog.text
