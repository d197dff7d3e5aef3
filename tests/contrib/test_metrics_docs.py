"""What is written of metrics: names, samples, the dashboard and the rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from django.apps import AppConfig
from django.http import HttpRequest
from prometheus_client import REGISTRY, CollectorRegistry

from ratelimits.contrib import prometheus
from tests.docs.pages import text_of
from tests.docs.samples import sample
from tests.processes import ROOT

DOCS = ROOT / "docs"
PAGE = "docs/metrics.md"
RULES = sample("docs/operations.md", "- alert: RateLimitStoreDown")
NAME = re.compile(r"ratelimits_\w+")
LABELS = re.compile(r"(\w+)(?:=~|!=|!~|=)\"")
GROUPED = re.compile(r"by \(([^)]*)\)")


@pytest.fixture
def started() -> Iterator[prometheus.Metrics]:
    prometheus.start(CollectorRegistry())
    metrics = prometheus._started["metrics"]
    yield metrics
    prometheus._started.pop("metrics").end()


@pytest.fixture
def known(started: prometheus.Metrics) -> dict[str, set[str]]:
    """The labels of each metric that there is, by the name of its samples."""
    made = [value for value in vars(started).values() if hasattr(value, "_labelnames")]
    ending = {"counter": "_total", "gauge": ""}
    return {each._name + ending[each._type]: set(each._labelnames) for each in made}


def expressions() -> list[str]:
    board = json.loads((DOCS / "grafana.json").read_text())
    of_board = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    rules = yaml.safe_load(RULES)
    return of_board + [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


def test_the_dashboard_and_the_rules_ask_for_what_there_is(known: dict[str, set[str]]) -> None:
    asked = set()
    for expression in expressions():
        names = set(NAME.findall(expression))
        labels = set(LABELS.findall(expression))
        labels |= {name for names in GROUPED.findall(expression) for name in names.split(", ")}
        assert names and names <= set(known), expression
        assert labels - {"job"} <= set().union(*(known[name] for name in names)), expression
        assert expression.count("(") == expression.count(")")
        assert expression.count("{") == expression.count("}")
        asked |= names
    assert asked == set(known)


def test_the_dashboard_can_be_imported() -> None:
    board = json.loads((DOCS / "grafana.json").read_text())
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    variables = {each["name"] for each in board["templating"]["list"]}
    text = json.dumps(board)
    assert set(re.findall(r"\$\{?([a-z]+)\}?", text)) == variables
    assert set(NAME.findall(text)) >= {"ratelimits_store_up"}


def test_the_table_names_all_of_them(known: dict[str, set[str]]) -> None:
    rows = re.findall(r"^\| `(ratelimits_\w+)` \|([^|]*)\|", text_of(PAGE), re.MULTILINE)
    assert {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows} == known


def shown(holding: str) -> dict[str, Any]:
    told: dict[str, Any] = {"__name__": "shop.apps"}
    exec(sample(PAGE, holding), told)
    return told


def test_the_sample_that_turns_them_on(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(prometheus, "start", lambda: calls.append("started"))
    config: type[AppConfig] = shown("class ShopConfig")["ShopConfig"]
    config.ready(config.__new__(config))
    assert calls == ["started"]


def test_the_samples_that_serve_them(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    prometheus.start()
    metrics = prometheus._started["metrics"]

    def end() -> None:
        prometheus._started.pop("metrics").end()
        for value in vars(metrics).values():
            if hasattr(value, "_labelnames"):
                REGISTRY.unregister(value)

    request.addfinalizer(end)
    assert b"ratelimits_store_up 1.0" in shown("@exempt")["metrics"](HttpRequest()).content
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert shown("registry = CollectorRegistry()")["metrics"](HttpRequest()).status_code == 200
    worker: Any = type("Worker", (), {"pid": 1})
    assert shown("def child_exit")["child_exit"](None, worker) is None
