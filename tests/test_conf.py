from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from ratelimits.conf import DEFAULTS, conf, resolve
from tests.processes import ROOT

# Another value than the default, for every setting.
OTHERS: dict[str, Any] = {
    "MODE": "shadow",
    "CACHE": "limits",
    "TENANT": [],
    "PLAN": "tests.test_conf.plan",
    "TENANT_LABEL": "tests.test_conf.plan",
    "EXEMPT": "tests.test_conf.plan",
    "PROTECT": ["/api/"],
    "TRUSTED_PROXIES": 1,
    "IPV6_PREFIX": 56,
    "HEADERS": [],
    "PROBLEM_TYPES": {"quota-exceeded": "/quota"},
    "RESPONSE": "tests.test_conf.plan",
    "KEY_SECRET": "secret",
    "STORE_TIMEOUT": 1,
    "LOCAL_REFUSALS": 1,
    "WORKERS": 2,
    "STORE_FAILURE": "deny",
    "CATALOG_TTL": 5,
    "CLOCK": "process",
}


def plan(tenant: str) -> str:
    return "pro"


def test_every_setting_is_covered_here() -> None:
    assert OTHERS.keys() == DEFAULTS.keys()


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_override(name: str) -> None:
    assert getattr(conf, name) == DEFAULTS[name]
    with override_settings(RATELIMITS={name: OTHERS[name]}):
        assert getattr(conf, name) == OTHERS[name]
        others = {other for other in DEFAULTS if getattr(conf, other) != DEFAULTS[other]}
        assert others == {name}
        with override_settings(RATELIMITS={}):
            assert getattr(conf, name) == DEFAULTS[name]
        assert getattr(conf, name) == OTHERS[name]
    assert getattr(conf, name) == DEFAULTS[name]


@pytest.mark.parametrize("value", [None, {}])
def test_without_settings(value: Any) -> None:
    with override_settings(RATELIMITS=value):
        assert {name: getattr(conf, name) for name in DEFAULTS} == DEFAULTS


def test_unknown_setting() -> None:
    with pytest.raises(AttributeError, match='no setting "MODES"'):
        _ = conf.MODES
    assert not hasattr(conf, "MODES")


class TestCallables:
    def test_not_set(self) -> None:
        assert resolve(None) is None
        assert conf.imported("PLAN") is None

    @pytest.mark.parametrize("value", ["tests.test_conf.plan", plan])
    def test_set(self, value: Any) -> None:
        assert resolve(value) is plan
        with override_settings(RATELIMITS={"PLAN": value}):
            assert conf.imported("PLAN") is plan
        assert conf.imported("PLAN") is None

    def test_not_there(self) -> None:
        with pytest.raises(ImportError, match="no_such_name"):
            resolve("tests.test_conf.no_such_name")


def test_nothing_reads_settings_when_imported() -> None:
    """Nor the models; so an app may import from here before Django is ready."""
    modules = (
        "ratelimits, ratelimits.conf, ratelimits.keys, ratelimits.addresses, ratelimits.tenants, "
        "ratelimits.rates, ratelimits.limits, ratelimits.exceptions"
    )
    code = f"import sys, {modules}; print('ratelimits.models' in sys.modules)"
    env = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


class Meanwhile(list[dict[str, Any]]):
    """What goes before the settings, until somebody has looked: then another thread adds to it."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from self[:]
        if not self:
            self.append({"MODE": "off"})
            conf.forget()


def test_what_is_changed_while_another_thread_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not keep what it has read by then, as for the rest of a test."""
    conf.forget()
    monkeypatch.setattr("ratelimits.conf.above", Meanwhile())
    try:
        assert conf.MODE == "enforce"
        assert conf.MODE == "off"
    finally:
        monkeypatch.undo()
        conf.forget()
