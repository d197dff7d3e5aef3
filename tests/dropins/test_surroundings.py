"""The drop-in throttles in other stores, beside others, async, and with requests made up."""

from __future__ import annotations

from threading import Thread
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from adrf.views import APIView as AsyncAPIView
from django.core.cache import cache
from django.test import AsyncRequestFactory, Client, RequestFactory
from django.urls import path
from fakeredis import FakeRedisConnection
from rest_framework import throttling as theirs
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from ratelimits.checks.caches import check_cache
from ratelimits.stores.memory import MemoryStore
from ratelimits.throttling import UserRateThrottle
from tests.doors import left, statuses
from tests.fresh import the_redis_store
from tests.settings import database_caches, memcached_caches, redis_caches

pytestmark = [pytest.mark.urls(__name__), pytest.mark.usefixtures("still")]


class Two(UserRateThrottle):
    rate = "2/min"
    scope = "two"


class Three(UserRateThrottle):
    rate = "3/min"
    scope = "three"


class Hundred(UserRateThrottle):
    rate = "100/hour"
    scope = "hundred"


class Hourly(UserRateThrottle):
    rate = "2/hour"
    scope = "two"


class Clocked(Two):
    scope = "clocked"
    now = 0.0

    def timer(self) -> float:
        return type(self).now


class Sometimes(BaseThrottle):
    """One that is nobody's of ours."""

    def allow_request(self, request: Any, view: Any) -> bool:
        return "X-No" not in request.headers


class View(APIView):
    throttle_classes: list[Any] = [Two]

    def get(self, request: Any) -> Response:
        return Response({})


class Beside(View):
    throttle_classes = [Sometimes, Two]


class Nesting(View):
    """A view that has another one answer."""

    throttle_classes = [Three]

    def get(self, request: Any) -> Response:
        answer: Any = View.as_view()(request._request)
        return Response({"inner": answer.status_code})


class Async(AsyncAPIView):  # type: ignore[misc]
    throttle_classes = [Two, Three]

    async def get(self, request: Any) -> Response:
        return Response({})


urlpatterns = [
    path("two", View.as_view()),
    path("beside", Beside.as_view()),
    path("nesting", Nesting.as_view()),
]


def test_clearing_the_cache_forgets_on_memcached(
    client: Client, memcached_server: Any, settings: Any
) -> None:
    settings.CACHES = memcached_caches(memcached_server.address)
    settings.RATELIMITS = {"LOCAL_REFUSALS": 0, "STORE_TIMEOUT": 20, "STORE_FAILURE": "deny"}
    for _ in range(2):
        assert statuses(lambda: client.get("/two"), 3) == [200, 200, 429]
        cache.clear()


@pytest.mark.parametrize("kind", [Mock, MagicMock])
@pytest.mark.parametrize("given", [{}, {"META": {"REMOTE_ADDR": "192.0.2.1"}, "method": "GET"}])
def test_requests_that_are_made_up(kind: Any, given: dict[str, Any]) -> None:
    """With nothing but what DRF's throttles read of them."""
    made = kind(user=kind(is_authenticated=True, pk=7), **given)
    assert [Two().allow_request(made, kind()) for _ in range(3)] == [True, True, False]
    other = kind(user=kind(is_authenticated=True, pk=8), **given)
    assert Two().allow_request(other, kind())


def test_exact_with_many_threads(on_redis: Any) -> None:
    view: Any = type("Many", (View,), {"throttle_classes": [Hundred]})
    codes: list[int] = []

    def call() -> None:
        many = view.as_view()
        codes.extend(many(RequestFactory().get("/")).status_code for _ in range(25))

    threads = [Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(codes), codes.count(200)) == (200, 100)


async def test_async_views() -> None:
    view: Any = Async.as_view()
    answers = [await view(AsyncRequestFactory().get("/")) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert left(answers[0]) == {"two": 1, "three": 2}


def test_beside_a_throttle_of_somebody_else(client: Client) -> None:
    refused = client.get("/beside", headers={"X-No": "1"})
    assert refused.status_code == 429
    assert "Retry-After" not in refused.headers
    # DRF's rule: this one does not know that another has refused, and counts.
    assert left(client.get("/two")) == {"two": 0}


def test_a_view_that_calls_another(client: Client) -> None:
    """Both are passed, and both count, each time."""
    inner = [client.get("/nesting").json()["inner"] for _ in range(3)]
    assert inner == [200, 200, 429]
    assert client.get("/nesting").status_code == 429


def made_up() -> Any:
    return Mock(user=Mock(is_authenticated=True, pk=7))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda now: monkeypatch.setattr(Clocked, "now", now)


def test_the_same_request_again_after_a_refusal_is_counted(clock: Any) -> None:
    request: Any = RequestFactory().get("/")
    request.user = None
    view: Any = None
    for now in (0.0, 60.0):
        clock(now)
        assert [Clocked().allow_request(request, view) for _ in range(3)] == [True, True, False]


def test_only_throttles_with_a_clock_go_by_it(clock: Any, monkeypatch: Any) -> None:
    clock(5.0)
    times: list[int | None] = []
    kept = MemoryStore.run

    def run(self: Any, operation: Any, group: Any, costs: Any, now: Any = None) -> Any:
        times.append(now)
        return kept(self, operation, group, costs, now)

    monkeypatch.setattr(MemoryStore, "run", run)
    view: Any = type("Both", (View,), {"throttle_classes": [Clocked, Two]})
    assert view.as_view()(RequestFactory().get("/")).status_code == 200
    assert times == [5_000_000, None]


def test_history_tells_when_the_oldest_ends(clock: Any) -> None:
    """So that DRF would reckon the same wait from it."""
    throttle = Clocked()
    for now in (0.0, 10.0, 30.0):
        clock(now)
        throttle.allow_request(made_up(), made_up())
    assert throttle.wait() == 30
    assert theirs.SimpleRateThrottle.wait(throttle) == pytest.approx(30)


def test_a_wait_is_told_while_the_store_is_away(settings: Any) -> None:
    settings.CACHES = redis_caches("redis://127.0.0.1:1/0")
    settings.RATELIMITS = {"STORE_FAILURE": "deny"}
    throttle = Two()
    assert not throttle.allow_request(made_up(), made_up())
    assert throttle.wait() in (1, 2)


def test_without_the_app_there_is_no_table_to_count_in(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Each process counts by itself, and the log says what to do."""
    settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != "ratelimits"]
    settings.CACHES = database_caches()
    assert [Two().allow_request(made_up(), made_up()) for _ in range(3)] == [True, True, False]
    assert 'Add "ratelimits" to INSTALLED_APPS' in caplog.text


DJANGO_REDIS: dict[str, Any] = {"CONNECTION_POOL_KWARGS": {"connection_class": FakeRedisConnection}}
FAKES: dict[str, dict[str, Any]] = {
    "django_redis.cache.RedisCache": DJANGO_REDIS,
    "django.core.cache.backends.redis.RedisCache": {"connection_class": FakeRedisConnection},
}


@pytest.mark.parametrize("backend", list(FAKES))
def test_tests_of_projects_with_fakeredis(
    backend: str, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in the memory of the process, and so are the counts, until it is cleared."""
    settings.CACHES = redis_caches(f"redis://{backend}:1/0", backend, **FAKES[backend])
    settings.RATELIMITS = {}
    for _ in range(2):
        assert [Two().allow_request(made_up(), made_up()) for _ in range(3)] == [True, True, False]
        cache.clear()
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []
    assert [each.id for each in check_cache()] == ["ratelimits.W010"]


def test_the_cache_of_a_process_is_nothing_to_shared_counts(on_redis: Any, settings: Any) -> None:
    local = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    settings.CACHES = {"default": local, "redis": redis_caches(on_redis.url)["default"]}
    settings.RATELIMITS = {**settings.RATELIMITS, "CACHE": "redis"}
    assert [Two().allow_request(made_up(), made_up()) for _ in range(3)] == [True, True, False]
    cache.clear()
    assert not Two().allow_request(made_up(), made_up())
    the_redis_store().close()


def test_one_scope_and_two_windows_are_two_counts() -> None:
    allowed = [
        [kind().allow_request(made_up(), made_up()) for kind in (Hourly, Two)] for _ in range(3)
    ]
    assert allowed == [[True, True], [True, True], [False, False]]


def test_two_limits_of_one_name_are_told_apart(client: Client) -> None:
    view: Any = type("Twin", (View,), {"throttle_classes": [Two, Hourly]})
    answers = [view.as_view()(RequestFactory().get("/")) for _ in range(3)]
    assert left(answers[0]) == {"two": 1, "two-2": 1}
    assert answers[2].data["violated-policies"] == ["two", "two-2"]
