"""What docs/operations.md says is so: commands, code, names, messages and links."""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from logging.config import DictConfigurator
from typing import Any

import pytest
from django.core.management import call_command
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.test.utils import override_settings
from django.urls import path

from ratelimits import usage
from ratelimits.doctor.report import examine
from ratelimits.edits import Edit
from ratelimits.keys import digest
from ratelimits.limiter import reset, take
from ratelimits.models import Plan, PlanLimit
from ratelimits.signals import refused, store_down, store_up
from ratelimits.stores import get_store
from tests.docs.pages import text_of
from tests.docs.samples import commands, sample
from tests.fresh import PATIENT
from tests.messages import GAP, messages
from tests.servers import MemcachedServer, RedisServer
from tests.settings import database_caches, memcached_caches, redis_caches

PAGE = "docs/operations.md"
TEXT = text_of(PAGE)
COMMANDS = commands(PAGE)


def section(title: str) -> str:
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """The cells of a section's tables, without their heads."""
    lines = [line for line in section(title).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.fixture
def free(db: None) -> Plan:
    plan = Plan.objects.create(slug="free", is_default=True)
    plan.limits.create(name="api", rate="10/h")
    return plan


@pytest.mark.usefixtures("fresh", "free")
@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("python manage.py ")])
def test_commands(command: str, settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    settings.DEBUG = True
    _, _, name, *arguments = shlex.split(command)
    call_command(name, *arguments)
    assert capsys.readouterr().out


def test_only_commands_that_are_tried() -> None:
    assert all(command.startswith(("python manage.py ", "redis-cli ")) for command in COMMANDS)


@pytest.fixture
def as_before(redis_server: RedisServer) -> Iterator[RedisServer]:
    client = redis_server.client()
    names = ("appendonly", "maxmemory", "maxmemory-policy")
    before = {name: client.config_get(name)[name] for name in names}
    yield redis_server
    for name, value in before.items():
        client.config_set(name, str(value))
    client.execute_command("ACL", "DELUSER", "limits")


def told(server: RedisServer) -> None:
    for command in COMMANDS:
        if command.startswith("redis-cli "):
            assert server.client().execute_command(*shlex.split(command)[1:]) in (b"OK", True)


@pytest.mark.usefixtures("fresh", "free")
def test_a_redis_as_it_says(as_before: RedisServer, settings: Any) -> None:
    """A user with no more rights than those does everything, and the doctor has no complaint."""
    for number, algorithm in enumerate(("fixed_window", "sliding_log", "sliding_counter")):
        PlanLimit.objects.create(
            plan=Plan.objects.get(), name=algorithm, rate=f"{number + 3}/h", algorithm=algorithm
        )
    told(as_before)
    url = as_before.url.replace("//", "//limits:password@").replace("/0", "/1")
    settings.CACHES = {**settings.CACHES, "limits": redis_caches(url)["default"]}
    settings.RATELIMITS = {**PATIENT, "CACHE": "limits", "STORE_TIMEOUT": 10}
    assert [take("acme").allowed for _ in range(5)] == [True] * 3 + [False] * 2
    store: Any = get_store()
    store.store.set_versions({"of nobody": "a"}, 60)
    Edit(plans=True).publish()
    reset("acme")
    assert take("acme").allowed
    store.count_processes("one", 300)
    usage.flush()
    assert usage.recent(["acme"])[0].requests == 6
    assert usage.top().callers
    store.store.usage.drop("a table", 60, [b"field"])
    assert not store.breaker.is_open
    found = examine()
    assert [finding for finding in found if finding.level != "ok"] == []
    assert {finding.name for finding in found} >= {"store.memory", "store.keys", "processes"}
    store.store.close()


def test_the_json(free: Plan, fresh: None, capsys: Any, settings: Any) -> None:
    settings.DEBUG = True
    call_command("ratelimits_doctor", "--json")
    shown = json.loads(sample(PAGE, '"findings": ['))
    real = json.loads(capsys.readouterr().out)
    assert real["format"] == shown["format"]
    assert set(real) == set(shown)
    assert set(real["findings"][0]) == set(shown["findings"][0])


@pytest.mark.usefixtures("fresh", "free")
def test_the_names_of_findings(
    redis_server: RedisServer, memcached_server: MemcachedServer, settings: Any
) -> None:
    """All that there are, and nothing else, with all that is in their values."""
    kinds = (
        redis_caches(redis_server.url),
        memcached_caches(memcached_server.address),
        database_caches(),
        settings.CACHES,
    )
    found: dict[str, set[str]] = defaultdict(set)
    settings.RATELIMITS = PATIENT
    for caches in kinds:
        settings.CACHES = caches
        for finding in examine():
            if not finding.name.startswith("ratelimits."):
                found[finding.name] |= set(finding.value)
        store: Any = get_store()
        store.store.close()
    said = {
        name.strip("`"): set(re.findall(r"`(\w+)`", values))
        for name, values, *_ in rows("One look")
        if re.fullmatch(r"`[a-z.]+`", name) and name != "`name`"
    }
    assert said == found


def test_messages_of_the_log() -> None:
    """Each that the code can write has a row; and each row is of one that it can write."""
    said = {row[1].removesuffix(" (once)") for row in rows("Logs") if row[0] != "level"}
    patterns = {text: re.compile(re.escape(text).replace(GAP, ".*")) for text in said}
    real = messages()
    unsaid = [m for m in real if not any(p.fullmatch(m) for p in patterns.values())]
    assert unsaid == [], "a row is missing in the table of docs/operations.md"
    gone = [text for text, p in patterns.items() if not any(p.fullmatch(m) for m in real)]
    assert gone == [], "rows of what is not logged any more"


def python(start: str) -> dict[str, Any]:
    """What a block of code defines."""
    names: dict[str, Any] = {"OLD_SECRET_KEY": "old", "statsd": Statsd()}
    exec(compile(sample(PAGE, start), PAGE, "exec"), names)
    return names


class Statsd:
    def __init__(self) -> None:
        self.gauges: dict[str, int] = {}
        self.counts: list[str] = []

    def gauge(self, name: str, value: int) -> None:
        self.gauges[name] = value

    def incr(self, name: str) -> None:
        self.counts.append(name)


def test_a_rotated_secret() -> None:
    with override_settings(SECRET_KEY="old"):
        before = digest("tenant", "acme")
    with override_settings(SECRET_KEY="new"):
        assert digest("tenant", "acme") != before
        with override_settings(RATELIMITS=python("KEY_SECRET")["RATELIMITS"]):
            assert digest("tenant", "acme") == before


def answer(request: HttpRequest, status: int) -> HttpResponse:
    return HttpResponse(status=status)


urlpatterns = [path("<int:status>", answer)]


@pytest.mark.urls(__name__)
def test_logs_without_refusals(caplog: pytest.LogCaptureFixture) -> None:
    config = python("LOGGING")["LOGGING"]
    ((name, entry),) = config["loggers"].items()
    configurator = DictConfigurator(config)
    filters = [configurator.configure_filter(config["filters"][n]) for n in entry["filters"]]
    logger, client = logging.getLogger(name), Client()
    for added in filters:
        logger.addFilter(added)
    try:
        for status in (404, 429, 500, 503):
            client.get(f"/{status}")
    finally:
        for added in filters:
            logger.removeFilter(added)
    assert [record.__dict__["status_code"] for record in caplog.records] == [404, 500]


@pytest.mark.usefixtures("fresh", "free")
def test_receivers_of_signals() -> None:
    signals = (store_down, store_up, refused)
    before = [list(signal.receivers) for signal in signals]
    names = python("statsd.gauge")
    try:
        store_down.send(sender=None, fault="gone")
        assert names["statsd"].gauges == {"ratelimits.store_is_down": 1}
        store_up.send(sender=None)
        assert names["statsd"].gauges == {"ratelimits.store_is_down": 0}
        for _ in range(11):
            take("acme")
        assert names["statsd"].counts == ["ratelimits.refused.429"]
    finally:
        for signal, receivers in zip(signals, before, strict=True):
            signal.receivers = receivers
            signal.sender_receivers_cache.clear()
