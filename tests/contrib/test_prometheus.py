"""Metrics of prometheus_client: what they count, and that nobody waits or is named for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from ratelimits.contrib import prometheus
from ratelimits.decorators import ratelimit
from ratelimits.limiter import charge, peek, take
from ratelimits.models import Plan
from ratelimits.tallies import Tally, faults, reloads
from ratelimits.usage.recorder import recorder
from tests.doors import for_everyone, make_plan, per_address
from tests.fresh import PATIENT
from tests.processes import ROOT
from tests.servers import RedisServer
from tests.settings import MIDDLEWARE
from tests.waiting import wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

OURS = "ratelimits.middleware.RateLimitMiddleware"


@ratelimit(scope="page")
def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("page")


urlpatterns = [path("page", page)]


@pytest.fixture
def registry() -> Iterator[CollectorRegistry]:
    faults.changes()
    reloads.changes()
    made = CollectorRegistry()
    prometheus.start(made)
    yield made
    prometheus._started.pop("metrics").end()


@pytest.fixture
def value(registry: CollectorRegistry) -> Callable[..., float]:
    def value(name: str, **labels: str) -> float:
        return registry.get_sample_value(f"ratelimits_{name}", labels) or 0

    return value


def test_requests_and_what_each_limit_made_of_them(value: Callable[..., float]) -> None:
    plan = make_plan("api 5/d", "search 2/d search")
    plan.limits.create(name="tried", rate="1/d", mode="shadow")
    assert [take("acme", scope="search").allowed for _ in range(4)] == [True, True, False, False]
    assert value("requests_total", outcome="allowed") == 2
    assert value("requests_total", outcome="refused") == 2
    assert value("requests_total", outcome="shadow") == 3
    assert value("decisions_total", limit="api", scope="search", outcome="allowed") == 2
    assert value("decisions_total", limit="search", scope="search", outcome="refused") == 2
    assert value("decisions_total", limit="api", scope="search", outcome="refused") == 0
    assert value("decisions_total", limit="tried", scope="search", outcome="shadow") == 3
    assert value("takes_total", source="store", status="200") == 2
    assert value("takes_total", source="store", status="429") == 2


def test_what_takes_nothing_is_not_counted(value: Callable[..., float]) -> None:
    make_plan("api 5/d")
    peek("acme")
    charge("acme", cost=2)
    assert value("requests_total", outcome="allowed") == 0
    assert value("takes_total", source="store", status="200") == 0


def test_nobody_is_named(registry: CollectorRegistry, client: Client) -> None:
    make_plan("api 2/d")
    per_address("1/d")
    for _ in range(3):
        take("acme-the-tenant")
        client.get("/page", REMOTE_ADDR="203.0.113.7")
    text = generate_latest(registry).decode()
    assert 'limit="api"' in text
    assert "acme" not in text and "203.0.113" not in text


def test_the_service_is_closed(value: Callable[..., float]) -> None:
    make_plan("api 5/d")
    for_everyone("1/d")
    take("acme")
    assert take("acme").status == 503
    assert value("takes_total", source="store", status="503") == 1


def test_counters_never_go_back(
    value: Callable[..., float], client: Client, settings: Any, registry: CollectorRegistry
) -> None:
    """A first door lets pass what a second one refuses; between the two they were asked for."""
    settings.MIDDLEWARE = [OURS, *MIDDLEWARE]
    make_plan("api 1/d")
    per_address("10/d")
    before: dict[str, float] = {}
    seen: list[float] = []

    def look() -> None:
        seen.append(value("requests_total", outcome="allowed"))
        for metric in registry.collect():
            for sample in metric.samples:
                if metric.type == "counter" and sample.name.endswith("_total"):
                    name = f"{sample.name}{sorted(sample.labels.items())}"
                    assert sample.value >= before.get(name, 0)
                    before[name] = sample.value

    settings.RATELIMITS = {**PATIENT, "TENANT": [lambda request: look()]}
    statuses = [client.get("/page").status_code for _ in range(4)]
    look()
    assert statuses == [200, 429, 429, 429]
    # What was seen too early of the refused ones is not counted again.
    client.get("/page", REMOTE_ADDR="203.0.113.7")
    look()
    assert value("requests_total", outcome="refused") == 3
    assert value("requests_total", outcome="allowed") == 2
    assert max(seen[:-1]) > 1
    assert value("takes_total", source="store", status="429") == 3


def test_refusals_by_what_the_process_knows(
    value: Callable[..., float], on_redis: RedisServer, settings: Any
) -> None:
    settings.RATELIMITS = {**PATIENT, "LOCAL_REFUSALS": 60}
    make_plan("api 1/d")
    for _ in range(5):
        take("acme")
    assert value("takes_total", source="store", status="429") == 1
    assert value("takes_total", source="local", status="429") == 3


def test_the_store_goes_and_comes(
    value: Callable[..., float], on_redis: RedisServer, settings: Any
) -> None:
    settings.RATELIMITS = {**PATIENT, "STORE_TIMEOUT": 2, "STORE_FAILURE": "allow"}
    make_plan("api 5/d")
    take("acme")
    assert (value("store_up"), value("breaker_open")) == (1, 0)
    on_redis.kill()
    take("acme")
    assert value("store_errors_total", kind="away") >= 1
    assert (value("store_up"), value("breaker_open")) == (0, 1)
    assert value("takes_total", source="local", status="200") == 1
    on_redis.start()
    wait_until(lambda: value("store_up") == 1)
    assert value("breaker_open") == 0


def test_a_flip_is_told_without_a_look(
    registry: CollectorRegistry, on_redis: RedisServer, settings: Any
) -> None:
    """Where processes share files, nobody asks each of them."""
    settings.RATELIMITS = {**PATIENT, "STORE_TIMEOUT": 2, "STORE_FAILURE": "allow"}
    make_plan("api 5/d")
    gauge = prometheus._started["metrics"].store_up
    on_redis.kill()
    take("acme")
    wait_until(lambda: gauge._value.get() == 0)
    on_redis.start()
    wait_until(lambda: gauge._value.get() == 1)


def test_reads_of_limits(value: Callable[..., float]) -> None:
    plan = make_plan("api 5/d")
    take("acme")
    take("acme")
    before = value("catalog_reloads_total", what="plans")
    assert before >= 1
    assert value("catalog_reloads_total", what="tenant") == 1
    plan.limits.update(rate="6/d")
    take("acme")
    assert value("catalog_reloads_total", what="plans") == before + 1


def test_labels_are_bounded(
    value: Callable[..., float], registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "MOST_LINES", 3)
    plan = make_plan(*[f"limit-{number} 5/d" for number in range(6)])
    for _ in range(2):
        take("acme")
        assert value("requests_total", outcome="allowed")
    lines = [line for line in generate_latest(registry).decode().splitlines() if "limit=" in line]
    assert len([line for line in lines if "decisions_total" in line]) == 4
    assert value("decisions_total", limit="…", scope="", outcome="allowed") == 6
    assert plan == Plan.objects.get()


def test_names_that_nobody_can_write(value: Callable[..., float], registry: Any) -> None:
    """Or else one request with half a character would end what Prometheus is told."""
    make_plan("api 5/d")
    take("acme", scope='a\ud800"\n\t')
    assert 'scope="a?\\"  "' in generate_latest(registry).decode()
    assert value("decisions_total", limit="api", scope='a?"  ', outcome="allowed") == 1


def test_what_waits_to_be_written(value: Callable[..., float]) -> None:
    make_plan("api 5/d")
    take("acme")
    take("bakery")
    assert value("usage_queue") == 2
    recorder.flush()
    assert value("usage_queue") == 0


def test_one_registry_has_them(registry: CollectorRegistry) -> None:
    prometheus.start(registry)
    with pytest.raises(ValueError, match="another registry"):
        prometheus.start(CollectorRegistry())


def test_nothing_is_added_up_unless_somebody_asks() -> None:
    assert recorder.totals is None


def test_a_fork_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = Tally()
    tally.note("away")
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    assert tally.changes() == {}
    tally.note("busy")
    assert tally.changes() == {"busy": 1}


SERVED = """
import os, django
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()
from django.http import HttpResponse
from django.test import RequestFactory
from ratelimits.contrib import prometheus
from ratelimits.decorators import ratelimit
prometheus.start()
view = ratelimit("2/d", by="ip", name="page")(lambda request: HttpResponse())
for _ in range(3):
    view(RequestFactory().get("/"))
"""


def test_processes_that_share_files(tmp_path: Path) -> None:
    """As under gunicorn: each writes the sums of its last seconds when it ends."""
    env = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen([sys.executable, "-c", SERVED], env=env) for _ in range(2)]
    assert [process.wait(60) for process in running] == [0, 0]
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(tmp_path))
    labels = {"limit": "page", "scope": ""}
    name = "ratelimits_decisions_total"
    assert registry.get_sample_value(name, {**labels, "outcome": "allowed"}) == 4
    assert registry.get_sample_value(name, {**labels, "outcome": "refused"}) == 2
