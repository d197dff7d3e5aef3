"""The plugin for pytest, in projects that turn it on."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from datetime import datetime, timezone

import pytest
from django.test import Client
from django.urls import path
from django.utils import timezone as django_timezone

from ratelimits.conf import above
from ratelimits.decorators import ratelimit
from ratelimits.limiter import take
from ratelimits.testing.plugin import RateLimits, ratelimits, ratelimits_off  # noqa: F401
from tests.processes import ROOT
from tests.servers import RedisServer
from tests.views import hello

PLUGIN = "ratelimits.testing.plugin"
urlpatterns = [path("view", ratelimit("1/m", by="ip")(hello))]

# Case 70: two tests of one request each, in both orders.
SETTINGS = """
import os
from tests.settings import *
from tests.settings import redis_caches

ROOT_URLCONF = "project_urls"
if os.environ.get("SHARED_REDIS"):
    CACHES = redis_caches(os.environ["SHARED_REDIS"])
    RATELIMITS = {"STORE_TIMEOUT": 20, "STORE_FAILURE": "deny"}
"""
URLS = """
from django.http import HttpResponse
from django.urls import path
from ratelimits.decorators import ratelimit

@ratelimit("1/m", by="ip")
def view(request):
    return HttpResponse("hello")

urlpatterns = [path("view", view)]
"""
TESTS = """
from django.test import SimpleTestCase

def test_one(client):
    assert client.get("/view").status_code == 200

def test_another(client):
    assert client.get("/view").status_code == 200
    assert client.get("/view").status_code == 429

test_another_again, test_one_again = test_another, test_one

class Tests(SimpleTestCase):
    def test_of_unittest(self):
        self.assertEqual(self.client.get("/view").status_code, 200)
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with five tests, each of which finds all buckets full or fails."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(project_settings=SETTINGS, project_urls=URLS, test_limits=TESTS)
    return pytester


def run(project: pytest.Pytester, *args: str) -> pytest.RunResult:
    return project.runpytest_subprocess(
        "--ds=project_settings", "-p", "no:randomly", "-p", "no:asyncio", "-Werror", *args
    )


def test_order_makes_no_difference_with_it(project: pytest.Pytester) -> None:
    run(project, "-p", PLUGIN).assert_outcomes(passed=5)


def test_nothing_is_turned_on_by_itself(project: pytest.Pytester) -> None:
    """Without it the first test empties the bucket of all others."""
    run(project, "--tb=no").assert_outcomes(passed=1, failed=4)


def test_processes_that_share_a_redis(
    project: pytest.Pytester, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that run at once do not meet, and what else is in the cache stays."""
    redis_server.client().set("session", "kept")
    monkeypatch.setenv("SHARED_REDIS", redis_server.url)
    project.makeconftest(f'pytest_plugins = ["{PLUGIN}"]')
    run(project, "-n", "2").assert_outcomes(passed=5)
    assert redis_server.client().get("session") == b"kept"
    assert len(redis_server.client().keys()) > 5


def test_without_settings_of_django() -> None:
    """Whoever imports it first may not have told where they are."""
    code = f"import {PLUGIN}; from django.conf import settings; exit(settings.configured)"
    finished = subprocess.run(
        [sys.executable, "-E", "-Werror", "-c", code], cwd=ROOT, capture_output=True, check=False
    )
    assert finished.returncode == 0, finished.stderr


def test_only_the_plugin_needs_pytest_and_only_frozen_freezegun() -> None:
    code = (
        "import sys; sys.modules.update(pytest=None, freezegun=None)\n"
        "from ratelimits.testing import *\n"
        "fresh_counts().__enter__(); frozen().__enter__()\n"
    )
    finished = subprocess.run(
        [sys.executable, "-E", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "import of freezegun halted" in finished.stderr


# The fixtures.


@pytest.mark.urls(__name__)
@pytest.mark.usefixtures("ratelimits_off")
def test_off(client: Client) -> None:
    assert [client.get("/view").status_code for _ in range(3)] == [200] * 3


def passes(times: int) -> list[bool]:
    return [take("acme").allowed for _ in range(times)]


def test_what_a_test_asks_for(ratelimits: RateLimits) -> None:  # noqa: F811
    ratelimits.override("2/m")
    assert passes(3) == [True, True, False]
    ratelimits.reset()
    assert passes(1) == [True]
    ratelimits.off()
    assert passes(3) == [True] * 3


@pytest.mark.urls(__name__)
def test_time(client: Client, ratelimits: RateLimits) -> None:  # noqa: F811
    clock = ratelimits.frozen("2026-11-30 12:00")
    assert django_timezone.now() == datetime(2026, 11, 30, 12, tzinfo=timezone.utc)
    ratelimits.assert_not_limited(client.get("/view"))
    ratelimits.assert_limited(client.get("/view"), "hello")
    clock.tick(60)
    ratelimits.assert_not_limited(client.get("/view"))


def test_it_ends_with_the_test() -> None:
    with ExitStack() as stack:
        helper = RateLimits(stack)
        helper.override("0/m")
        helper.frozen("2026-11-30 12:00")
        assert not take("acme").allowed
    assert above == []
    assert django_timezone.now() != datetime(2026, 11, 30, 12, tzinfo=timezone.utc)
