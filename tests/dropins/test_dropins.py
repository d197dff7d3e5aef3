from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.urls import path
from rest_framework import throttling as theirs
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from ratelimits.algorithms import Operation
from ratelimits.decorators import exempt
from ratelimits.signals import refused
from ratelimits.stores.memory import MemoryStore
from ratelimits.throttling import (
    AnonRateThrottle,
    PlanRateThrottle,
    ScopedRateThrottle,
    SimpleRateThrottle,
    UserRateThrottle,
    buckets,
)
from tests.doors import is_silent, left, make_plan, policies, problem, statuses

pytestmark = [pytest.mark.urls(__name__), pytest.mark.usefixtures("still")]


class Two(UserRateThrottle):
    rate = "2/min"
    scope = "two"


class Three(UserRateThrottle):
    rate = "3/min"
    scope = "three"


class One(UserRateThrottle):
    rate = "1/hour"
    scope = "one"


class ByKey(SimpleRateThrottle):
    rate = "1/day"

    def get_cache_key(self, request: Any, view: Any) -> str | None:
        return request.headers.get("X-Key")


class Many(UserRateThrottle):
    rate = "20000/day"
    scope = "many"


class Scoped(ScopedRateThrottle):
    THROTTLE_RATES = {"search": "2/5m", "unlimited": None}


def by_anyone() -> Any:
    """A request as tests of throttles make it, not of DRF's kind."""
    request: Any = APIRequestFactory().get("/", headers={"X-Key": "sk_live"})
    request.user = None
    return request


NO_VIEW: Any = None


class View(APIView):
    def get(self, request: Any) -> Response:
        return Response({})


def at(*kinds: Any, **said: Any) -> Any:
    made: Any = type("Made", (View,), {"throttle_classes": kinds, **said})
    return made.as_view()


@exempt
class Spared(View):
    throttle_classes = [One]


urlpatterns = [
    path("two", at(Two)),
    path("both", at(Three, Two)),
    path("tight-first", at(One, Three)),
    path("three", at(Three)),
    path("one", at(One)),
    path("by-key", at(ByKey)),
    path("many", at(Many)),
    path("search", at(Scoped, throttle_scope="search")),
    path("unscoped", at(Scoped)),
    path("plan-first", at(PlanRateThrottle, Three)),
    path("plan-last", at(Three, PlanRateThrottle)),
    path("plan", at(PlanRateThrottle)),
    path("spared", Spared.as_view()),
]


def test_headers_and_the_problem_are_those_of_our_own_throttle(client: Client) -> None:
    assert left(client.get("/two")) == {"two": 1}
    assert statuses(lambda: client.get("/two"), 2) == [200, 429]
    response = client.get("/two")
    assert response.headers["Retry-After"] == "60"
    assert policies(response) == ["two"]
    body = problem(response)
    assert body["violated-policies"] == ["two"]
    assert body["limit"] == 2


def test_a_log_up_to_its_longest_quota_and_a_counter_above(client: Client) -> None:
    found = {}
    for url in ("/two", "/many"):
        response = client.get(url)
        decision = response.wsgi_request.ratelimit  # type: ignore[attr-defined]
        found[url] = decision.outcomes[0].limit.algorithm
    assert found == {"/two": "sliding_log", "/many": "sliding_counter"}


def test_refused_by_a_later_one_gives_back_to_the_earlier(client: Client) -> None:
    assert statuses(lambda: client.get("/both"), 5) == [200, 200, 429, 429, 429]
    assert left(client.get("/three")) == {"three": 0}


def test_refused_by_an_earlier_one_takes_nothing_of_the_later(client: Client) -> None:
    assert statuses(lambda: client.get("/tight-first"), 5) == [200, 429, 429, 429, 429]
    assert left(client.get("/three")) == {"three": 1}


def test_all_are_asked_how_long_to_wait(client: Client) -> None:
    statuses(lambda: client.get("/three"), 3)
    client.get("/one")
    assert client.get("/tight-first").headers["Retry-After"] == "3600"
    # The one of a minute refuses too, and is waited for less.
    assert client.get("/both").headers["Retry-After"] == "60"


@pytest.mark.django_db
@pytest.mark.parametrize("url", ["/plan-first", "/plan-last"])
def test_together_with_a_plan_all_or_nothing(client: Client, url: str) -> None:
    make_plan("api 10/d")
    assert statuses(lambda: client.get(url), 5) == [200, 200, 200, 429, 429]
    assert left(client.get("/plan")) == {"api": 6}


@pytest.mark.django_db
@pytest.mark.parametrize("url", ["/plan-first", "/plan-last"])
def test_refused_by_the_plan_takes_nothing_else(client: Client, url: str) -> None:
    make_plan("api 1/d")
    assert statuses(lambda: client.get(url), 4) == [200, 429, 429, 429]
    assert left(client.get("/three")) == {"three": 1}


def test_by_the_key_of_the_project_and_none_is_no_limit(client: Client) -> None:
    assert statuses(lambda: client.get("/by-key"), 3) == [200, 200, 200]
    assert is_silent(client.get("/by-key"))
    for key in ("a", "b"):
        response = client.get("/by-key", headers={"X-Key": key})
        assert left(response) == {"ByKey": 0}
        assert client.get("/by-key", headers={"X-Key": key}).status_code == 429


def test_scoped(client: Client) -> None:
    assert statuses(lambda: client.get("/search"), 3) == [200, 200, 429]
    assert is_silent(client.get("/unscoped"))
    assert policies(client.get("/search")) == ["search"]


def test_exempt_views_are_spared(client: Client) -> None:
    assert statuses(lambda: client.get("/spared"), 3) == [200, 200, 200]
    assert is_silent(client.get("/spared"))


def test_exempt_requests_are_spared(client: Client, settings: Any) -> None:
    settings.RATELIMITS = {"EXEMPT": lambda request: "X-Inside" in request.headers}
    inside = {"X-Inside": "1"}
    assert statuses(lambda: client.get("/one", headers=inside), 3) == [200, 200, 200]
    assert statuses(lambda: client.get("/one"), 2) == [200, 429]


@pytest.mark.parametrize("mode", ["shadow", "off"])
def test_the_mode_of_everything_holds(client: Client, settings: Any, mode: str) -> None:
    settings.RATELIMITS = {"MODE": mode}
    assert statuses(lambda: client.get("/one"), 3) == [200, 200, 200]


def test_signals_tell_of_refusals(client: Client) -> None:
    heard: list[Any] = []

    def hear(decision: Any, **kwargs: Any) -> None:
        heard.append(decision.deciding.name)

    refused.connect(hear)
    try:
        statuses(lambda: client.get("/both"), 3)
    finally:
        refused.disconnect(hear)
    assert heard == ["two"]


def test_a_store_that_is_away_and_denies_is_a_503(client: Client, settings: Any) -> None:
    settings.CACHES = {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
        }
    }
    settings.RATELIMITS = {"STORE_FAILURE": "deny"}
    response = client.get("/two")
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1


def test_clearing_the_cache_forgets_in_memory(client: Client) -> None:
    assert statuses(lambda: client.get("/one"), 2) == [200, 429]
    cache.clear()
    assert statuses(lambda: client.get("/one"), 2) == [200, 429]


def test_clearing_the_cache_forgets_on_redis(client: Client, on_redis: Any) -> None:
    assert statuses(lambda: client.get("/one"), 2) == [200, 429]
    cache.clear()
    assert statuses(lambda: client.get("/one"), 2) == [200, 429]


def test_each_pass_of_one_request_counts() -> None:
    """As in tests that make a request once, or where a view calls another."""
    request = RequestFactory().get("/")
    view = at(Two)
    assert [view(request).status_code for _ in range(3)] == [200, 200, 429]
    assert at(Three)(request).status_code == 200


def test_one_instance_can_be_asked_again() -> None:
    throttle, request = Two(), by_anyone()
    assert [throttle.allow_request(request, NO_VIEW) for _ in range(3)] == [True, True, False]
    assert throttle.wait() == 60


class SameKey(Two):
    rate = "1/min"


def test_two_limits_of_one_key_are_both_kept() -> None:
    request = RequestFactory().get("/")
    for kinds in ((Two, SameKey), (SameKey, Two)):
        cache.clear()
        assert [at(*kinds)(request).status_code for _ in range(2)] == [200, 429]


def test_throttles_of_one_key_and_window_share_a_bucket() -> None:
    request = RequestFactory().get("/")
    assert at(SameKey)(request).status_code == 200
    assert [at(Two)(request).status_code for _ in range(2)] == [200, 429]


class Clocked(Two):
    now = 0.0

    def timer(self) -> float:
        return type(self).now


def test_a_clock_of_ones_own_is_obeyed_in_a_shared_store_too(client: Client, on_redis: Any) -> None:
    view, request = at(Clocked), RequestFactory().get("/")
    assert [view(request).status_code for _ in range(3)] == [200, 200, 429]
    Clocked.now = 59.0
    refused = view(request)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    Clocked.now = 60.0
    assert view(request).status_code == 200
    Clocked.now = 0.0


def test_the_usual_clock_is_that_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    view, request = at(Two), RequestFactory().get("/")
    assert [view(request).status_code for _ in range(3)] == [200, 200, 429]
    at_all: list[Any] = []

    def run(self: Any, operation: Any, group: Any, costs: Any, now: Any = None) -> Any:
        at_all.append(now)
        return kept(self, operation, group, costs, now)

    kept = MemoryStore.run
    monkeypatch.setattr(MemoryStore, "run", run)
    view(request)
    assert at_all == [None]


def test_history_has_as_many_times_as_there_were_requests() -> None:
    throttle, request = Two(), by_anyone()
    lengths = []
    for _ in range(3):
        throttle.allow_request(request, NO_VIEW)
        lengths.append(len(throttle.history))
    assert lengths == [1, 2, 2]


class Lenient(One):
    def throttle_failure(self) -> bool:
        return True


def test_who_lets_a_refusal_pass_lets_it_pass() -> None:
    request = RequestFactory().get("/")
    responses = [at(Lenient)(request) for _ in range(2)]
    assert [each.status_code for each in responses] == [200, 200]
    assert "Retry-After" not in responses[1].headers


class Strict(Three):
    def throttle_success(self) -> bool:
        return super().throttle_success() and "X-Ok" in self.request.headers

    def get_cache_key(self, request: Any, view: Any) -> str | None:
        self.request = request
        return super().get_cache_key(request, view)


def test_who_refuses_what_has_room_refuses() -> None:
    assert at(Strict)(RequestFactory().get("/")).status_code == 429
    assert at(Strict)(RequestFactory().get("/", headers={"X-Ok": "1"})).status_code == 200


class NoWait(One):
    def wait(self) -> None:
        return None


def test_a_refusal_tells_its_wait_even_so() -> None:
    request = RequestFactory().get("/")
    assert [at(NoWait)(request).headers.get("Retry-After") for _ in range(2)] == [None, "3600"]


@pytest.mark.parametrize(
    ("rate", "meant"),
    [
        ("10/min", (10, 60)),
        ("5/hour", (5, 3600)),
        ("3/s", (3, 1)),
        ("7/day", (7, 86400)),
        ("10/5m", (10, 300)),
        ("9/week", (9, 604800)),
        ("8/hours of the day", (8, 3600)),
        ("unlimited", (None, None)),
        (None, (None, None)),
    ],
)
def test_rates_of_both_ways_of_writing(rate: str | None, meant: tuple[int, int]) -> None:
    assert One().parse_rate(rate) == meant


def test_a_month_is_not_silently_a_minute() -> None:
    assert theirs.UserRateThrottle.parse_rate(One(), "10/month") == (10, 60)
    with pytest.raises(ImproperlyConfigured, match="10/30d"):
        One().parse_rate("10/month")


def test_unlimited_is_not_counted() -> None:
    class Unlimited(UserRateThrottle):
        rate = "unlimited"

    view, request = at(Unlimited), RequestFactory().get("/")
    assert is_silent(view(request))


class Fine(One):
    def parse_rate(self, rate: str | None) -> Any:
        return 1, 0.5


def test_a_window_of_parts_of_a_second_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="Fine"):
        Fine().allow_request(by_anyone(), View())


def test_who_is_told_of_is_the_user_the_address_or_the_kind_of_key(monkeypatch: Any) -> None:
    owners: list[Any] = []

    def bucket_of(*args: Any) -> Any:
        found = kept(*args)
        owners.append((found.owner.kind, found.owner.key))
        return found

    kept = buckets.bucket_of
    monkeypatch.setattr("ratelimits.throttling.simple.bucket_of", bucket_of)
    request = by_anyone()
    for kind in (Two, ByKey):
        kind().allow_request(request, NO_VIEW)
    request.user = SimpleNamespace(is_authenticated=True, pk=7)
    Two().allow_request(request, NO_VIEW)
    assert owners == [("address", "127.0.0.1"), ("by", "ByKey"), ("tenant", "user:7")]


def test_only_the_anonymous() -> None:
    class Anon(AnonRateThrottle):
        rate = "1/day"

    request = by_anyone()
    assert [Anon().allow_request(request, NO_VIEW) for _ in range(2)] == [True, False]
    request.user = SimpleNamespace(is_authenticated=True, pk=7)
    assert [Anon().allow_request(request, NO_VIEW) for _ in range(2)] == [True, True]


def test_a_request_without_an_address_shares_one_bucket() -> None:
    made: Any = HttpRequest()
    made.user = None
    assert [One().allow_request(made, NO_VIEW) for _ in range(2)] == [True, False]


def test_two_refusals_are_one_body_with_the_longer_wait(client: Client) -> None:
    assert client.get("/one").status_code == 200
    statuses(lambda: client.get("/three"), 3)
    response = client.get("/tight-first")
    assert problem(response)["violated-policies"] == ["one", "three"]
    assert left(response) == {"one": 0, "three": 0}


def test_what_has_room_again_meanwhile_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at a later throttle and its take."""
    request = RequestFactory().get("/")
    for view in (at(One), at(Three), at(Three), at(Three)):
        assert view(request).status_code == 200
    kept, room = MemoryStore.run, at(Three)

    def run(self: Any, operation: Any, group: Any, costs: Any, now: Any = None) -> Any:
        answer = kept(self, operation, group, costs, now)
        if operation is Operation.PEEK:
            kept(self, Operation.REFUND, group, costs, now)
        return answer

    monkeypatch.setattr(MemoryStore, "run", run)
    assert at(One, Three)(request).status_code == 429
    assert [room(request).status_code for _ in range(2)] == [200, 429]
