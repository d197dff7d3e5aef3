"""What is counted of takes, through the limiter and through doors, and what readers make of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import RequestFactory
from freezegun import freeze_time

from ratelimits import flow, limiter, usage
from ratelimits.algorithms import Operation
from ratelimits.decorators import ratelimit
from ratelimits.effects import drive
from ratelimits.models import Plan, ServiceLimit
from ratelimits.usage import Counts, Line

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh")]
NOON = "2026-07-01 12:00:10"


@pytest.fixture
def plan() -> Plan:
    plan = Plan.objects.create(slug="pro", name="Pro", is_default=True)
    plan.limits.create(name="api", rate="10/h")
    plan.limits.create(name="search", rate="2/h", scope="search")
    return plan


@pytest.fixture(autouse=True)
def process_clock(settings: Any) -> None:
    settings.RATELIMITS = {"CLOCK": "process"}


def counts(key: str = "acme", **options: Any) -> Counts:
    usage.flush()
    (found,) = usage.recent([key], **options)
    return found


def lines(key: str = "acme", **options: Any) -> dict[Line, Counts]:
    usage.flush()
    found: dict[Line, Counts] = {}
    for point in usage.history(key, **options).hours:
        for line, one in point.lines.items():
            found[line] = found.get(line, Counts()).plus(one)
    return {line: one for line, one in found.items() if any(one)}


@freeze_time(NOON)
def test_takes_of_a_key(plan: Plan) -> None:
    for cost in (1, 8, 3, 1):
        limiter.take("acme", cost=cost)
    limiter.take("other")
    assert counts() == Counts(3, 1, 0, 10, 3, 0)
    assert usage.recent(["other", "nobody", "acme"]) == [Counts(1, 0, 0, 1), Counts(), counts()]
    assert lines() == {Line("api", ""): Counts(3, 1, 0, 10, 3, 0)}


@freeze_time(NOON)
def test_by_the_scope_that_was_asked_for(plan: Plan) -> None:
    limiter.take("acme")
    for _ in range(3):
        limiter.take("acme", scope="search")
    assert counts() == Counts(3, 1, 0, 3, 1, 0)
    assert lines() == {
        Line("api", ""): Counts(1, 0, 0, 1),
        Line("api", "search"): Counts(2, 0, 0, 2),
        Line("search", "search"): Counts(2, 1, 0, 2, 1),
    }


@freeze_time(NOON)
def test_a_peek_is_nothing_and_a_charge_is_units(plan: Plan) -> None:
    limiter.peek("acme")
    assert counts() == Counts()
    limiter.take("acme")
    limiter.charge("acme", cost=5)
    limiter.refund("acme", cost=2)
    assert counts() == Counts(1, 0, 0, 4)


@freeze_time(NOON)
def test_shadow(plan: Plan) -> None:
    """It passes, and is told besides what would have refused it."""
    plan.limits.create(name="new", rate="1/h", mode="shadow")
    for _ in range(3):
        assert limiter.take("acme").allowed
    assert counts() == Counts(3, 0, 2, 3, 0, 2)
    assert lines() == {
        Line("api", ""): Counts(3, 0, 0, 3),
        Line("new", ""): Counts(3, 0, 2, 3, 0, 2),
    }


@freeze_time(NOON)
def test_the_setting_shadow(plan: Plan, settings: Any) -> None:
    settings.RATELIMITS = {"CLOCK": "process", "MODE": "shadow"}
    limiter.take("acme", cost=11)
    assert counts() == Counts(1, 0, 1, 11, 0, 11)


def test_off_or_without_limits_nothing_is_recorded(plan: Plan, settings: Any) -> None:
    settings.RATELIMITS = {"MODE": "off"}
    limiter.take("acme")
    settings.RATELIMITS = {}
    plan.limits.all().delete()
    limiter.take("acme")
    usage.flush()
    assert usage.recent(["acme"]) == [Counts()]
    assert usage.totals().hours[-1].total == Counts()


def request(user: str = "", **options: Any) -> Any:
    made: Any = RequestFactory().get("/", **options)
    made.user = type("User", (), {"is_authenticated": bool(user), "pk": user})()
    return made


@freeze_time(NOON)
def test_an_anonymous_caller_is_its_address(plan: Plan) -> None:
    drive(flow.at_view(request(REMOTE_ADDR="192.0.2.7")))
    assert counts("192.0.2.7", kind="address") == Counts(1, 0, 0, 1)
    assert counts("192.0.2.7") == Counts()


@freeze_time(NOON)
def test_the_same_limit_twice_is_once(plan: Plan) -> None:
    asked = request("7")
    for cost in (1, 1, 4, 2):
        drive(flow.at_view(asked, cost=cost))
    assert counts("user:7") == Counts(1, 0, 0, 4)
    assert lines("user:7") == {Line("api", ""): Counts(1, 0, 0, 4)}


@freeze_time(NOON)
def test_one_request_at_two_doors(plan: Plan) -> None:
    """The first only knows the address. In the end it is one request, of the tenant's."""
    ServiceLimit.objects.create(name="each", rate="5/h", per="address")
    asked = request("7", REMOTE_ADDR="192.0.2.7")
    drive(flow.at_door(asked, lambda _: False))
    assert counts("192.0.2.7", kind="address") == Counts(1, 0, 0, 1)
    drive(flow.at_view(asked))
    assert counts("user:7") == Counts(1, 0, 0, 1)
    assert counts("192.0.2.7", kind="address") == Counts()
    assert usage.totals().minutes[-1].total == Counts(1, 0, 0, 1)
    assert lines("192.0.2.7", kind="address") == {Line("each", ""): Counts(1, 0, 0, 1)}


@freeze_time(NOON)
def test_what_was_given_back_is_refused_not_allowed(plan: Plan) -> None:
    ServiceLimit.objects.create(name="each", rate="5/h", per="address")
    limiter.take("user:7", cost=10)
    asked = request("7", REMOTE_ADDR="192.0.2.7")
    drive(flow.at_door(asked, lambda _: False))
    assert not drive(flow.at_view(asked)).allowed
    usage.flush()
    assert counts("192.0.2.7", kind="address") == Counts()
    assert lines("192.0.2.7", kind="address") == {}
    assert counts("user:7") == Counts(1, 1, 0, 10, 1)
    assert usage.totals().minutes[-1].total == Counts(1, 1, 0, 10, 1)
    assert drive(flow.operate(Operation.PEEK, asked, "", 1)).outcomes[-1].remaining == 5


@freeze_time(NOON)
def test_refused_what_a_raised_cost_adds(plan: Plan) -> None:
    limiter.take("user:7", cost=5)
    asked = request("7")
    drive(flow.at_view(asked, cost=2))
    drive(flow.at_view(asked, cost=9))
    assert counts("user:7") == Counts(1, 1, 0, 5, 9)
    assert lines("user:7") == {Line("api", ""): Counts(1, 1, 0, 5, 9)}


@freeze_time(NOON)
@pytest.mark.parametrize(
    ("by", "kind", "key"),
    [
        ("ip", "address", "127.0.0.1"),
        ("user", "tenant", "user:7"),
        ("tenant", "tenant", "user:7"),
        ("header:X-Api-Key", "by", "header:X-Api-Key"),
        (lambda request: "secret", "by", "callable"),
    ],
)
def test_limits_in_code(by: Any, kind: str, key: str) -> None:
    """What a header or a field holds may be secret."""

    @ratelimit("2/h", by=by, name="login")
    def view(request: Any) -> Any:
        raise AssertionError

    for _ in range(3):
        with pytest.raises(AssertionError) if _ < 2 else pytest.MonkeyPatch.context():
            view(request("7", HTTP_X_API_KEY="secret"))
    assert counts(key, kind=kind) == Counts(2, 1, 0, 2, 1)
    assert lines(key, kind=kind) == {Line("login", ""): Counts(2, 1, 0, 2, 1)}


def test_minutes_and_hours(plan: Plan) -> None:
    with freeze_time("2026-07-01 11:58:30"):
        limiter.take("acme", cost=2)
        usage.flush()
    with freeze_time("2026-07-01 12:01:30"):
        limiter.take("acme", cost=3)
        usage.flush()
        limiter.take("acme", cost=4)
        found = usage.history("acme", hours=3, minutes=5)
        assert [point.total.allowed_units for point in found.minutes] == [0, 2, 0, 0, 3]
        assert [point.total.allowed_units for point in found.hours] == [0, 2, 3]
        usage.flush()
        found = usage.history("acme", hours=3, minutes=5)
        assert found.minutes[-1].total == Counts(2, 0, 0, 7)
        assert found.minutes[-1].start.isoformat() == "2026-07-01T12:01:00+00:00"
        assert found.minutes[-1].seconds == 60
        assert found.hours[1].start.isoformat() == "2026-07-01T11:00:00+00:00"
        assert usage.recent(["acme"], minutes=3) == [Counts(2, 0, 0, 7)]
        assert usage.recent(["acme"], minutes=4) == [Counts(3, 0, 0, 9)]
    with freeze_time("2026-07-01 12:59:00"):
        assert usage.recent(["acme"]) == [Counts(2, 0, 0, 7)]
    with freeze_time("2026-07-05 12:00:00"):
        limiter.take("acme")
        usage.flush()
        assert sum(point.total.allowed for point in usage.history("acme", hours=200).hours) == 1


def test_peaks(plan: Plan) -> None:
    for minute, scope, cost in ((1, "", 2), (1, "search", 2), (5, "", 3), (7, "", 1)):
        with freeze_time(f"2026-07-01 12:{minute:02}:00"):
            limiter.take("acme", cost=cost, scope=scope)
            usage.flush()
    with freeze_time("2026-07-01 13:30:00"):
        limiter.take("acme", cost=1)
        usage.flush()
        found, nothing = usage.peaks(["acme", "other"])
        assert found == {"api": (4, 8), "search": (2, 2)}
        assert nothing == {}
        assert usage.peaks(["acme"], hours=1) == [{"api": (1, 1)}]


@freeze_time(NOON)
def test_top(plan: Plan) -> None:
    for key, times in (("a", 1), ("b", 12), ("c", 3)):
        for _ in range(times):
            limiter.take(key)
    limiter.take("c", scope="search", cost=7)
    usage.flush()
    found = usage.top()
    assert [(used.owner.key, used.counts.requests) for used in found.callers] == [
        ("b", 12),
        ("c", 4),
        ("a", 1),
    ]
    assert (found.since.hour, found.cut) == (11, False)
    assert [used.owner.key for used in usage.top(1, by="refused").callers] == ["b"]
    (search,) = usage.top(by="refused", limit="search").callers
    assert (search.owner.key, search.counts.refused_units) == ("c", 7)


def test_refused_now(plan: Plan) -> None:
    times = ((0, "b"), (0, "old"), (6, "a"), (7, "a"), (2, "b"), (5, "b"), (7, "b"), (9, "b"))
    for minute, key in times:
        with freeze_time(f"2026-07-01 12:{minute:02}:00"):
            limiter.take(key, cost=11)
            limiter.take(f"fine-{key}")
            usage.flush()
    with freeze_time("2026-07-01 12:11:00"):
        found = usage.refused_now()
        assert usage.refused_now(minutes=1) == ()
    assert [(one.owner.key, one.line, one.counts.refused) for one in found] == [
        ("b", Line("api", ""), 2),
        ("a", Line("api", ""), 1),
    ]
    assert [(one.since.minute, one.until.minute) for one in found] == [(0, 9), (6, 7)]
