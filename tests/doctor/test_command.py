"""The command as people and probes meet it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ratelimits.doctor import report
from ratelimits.doctor.findings import Finding, bytes_text, time_text
from ratelimits.models import ModeSwitch, Plan, PlanLimit, Tenant
from tests.processes import ROOT

from .looking import look, printed, read

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh")]


@pytest.fixture(autouse=True)
def free(settings: Any) -> Plan:
    settings.DEBUG = True
    plan = Plan.objects.create(slug="free", is_default=True)
    plan.limits.create(name="api", rate="10/h")
    return plan


def test_a_line_for_each_finding() -> None:
    text, code = printed()
    assert code == 0
    for finding in look().values():
        assert f"{finding.level:7}  {finding.name}: " in text


def test_as_json() -> None:
    told, code = read()
    assert code == 0
    assert (told["format"], told["level"]) == (1, "ok")
    for finding in told["findings"]:
        assert set(finding) == {"name", "level", "text", "advice", "value"}
        assert finding["level"] in ("ok", "warning", "problem")
        assert isinstance(finding["value"], dict)
    names = [finding["name"] for finding in told["findings"]]
    assert len(set(names)) == len(names)


def test_the_settings_in_force(settings: Any) -> None:
    settings.RATELIMITS = {"WORKERS": 4, "STORE_FAILURE": "deny", "KEY_SECRET": "not-to-be-shown"}
    value = look()["settings"].value
    assert (value["WORKERS"], value["STORE_FAILURE"], value["MODE"]) == (4, "deny", "enforce")
    assert "not-to-be-shown" not in printed("--json")[0]


@pytest.mark.parametrize("mode", ["shadow", "off"])
def test_nothing_is_enforced(mode: str, settings: Any) -> None:
    settings.RATELIMITS = {"MODE": mode}
    found = look()
    assert found["settings"].level == "warning"
    assert ("store" in found) == (mode == "shadow")
    assert (printed()[1], printed("--strict")[1]) == (0, 1)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (["not", "a", "dictionary"], "ratelimits.E001"),
        ({"STORE_TIMEOUT": "fast"}, "ratelimits.E004"),
        ({"CACHE": 17}, "ratelimits.E004"),
        ({"NO_SUCH": 1}, "ratelimits.E002"),
    ],
)
def test_settings_that_are_wrong(value: Any, name: str, settings: Any) -> None:
    settings.RATELIMITS = value
    found = look()
    problems = {finding.name for finding in found.values() if finding.level == "problem"}
    assert any(problem.startswith("ratelimits.E") for problem in problems)
    assert name in problems or name == "ratelimits.E004"
    assert printed()[1] == 2


def test_a_silenced_check(settings: Any) -> None:
    settings.DEBUG = False
    assert "ratelimits.W010" in look()
    settings.SILENCED_SYSTEM_CHECKS = ["ratelimits.W010"]
    assert "ratelimits.W010" not in look()


def test_what_breaks_while_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        yield Finding("one", "ok", "fine")
        raise ZeroDivisionError("nobody thought of it")

    monkeypatch.setattr(report, "PARTS", (("part", broken), *report.PARTS[-1:]))
    found = look()
    assert found["one"].level == "ok"
    assert found["part"].level == "problem"
    assert "nobody thought of it" in found["part"].text
    assert "catalog.plans" in found


def test_bad_rows(free: Plan) -> None:
    free.limits.create(name="typo", rate="10/h")
    PlanLimit.objects.filter(name="typo").update(rate="ten/m")
    Tenant.objects.create(key="acme").limits.create(name="own", rate="5/h")
    found = look()
    assert found["catalog.rows"].level == "warning"
    assert found["catalog.rows"].value == {"bad_rows": 1, "looked_at": 3}
    assert "typo" in found["catalog.rows"].text
    assert found["catalog.tenants"].value == {"tenants": 1}
    assert found["catalog.plans"].value["limits"] == 1


def test_no_default_plan() -> None:
    Plan.objects.update(is_default=False)
    assert look()["ratelimits.W031"].level == "warning"


def test_a_process_of_its_own(tmp_path: Path) -> None:
    """What a probe of a container sees: no traceback, and the exit code."""
    settings = (
        '{"DATABASES": {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "%s"}}}'
        % (tmp_path / "empty.sqlite3")
    )
    variables = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "RATELIMITS_TEST_SETTINGS": settings,
    }
    command = [sys.executable, "-m", "django", "ratelimits_doctor", "--json"]
    ended = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 2
    assert "0001_initial" in ended.stdout
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (bytes_text(17), "17 bytes"),
        (bytes_text(1536), "1.5 KB"),
        (bytes_text(3 * 2**30), "3.0 GB"),
        (time_text(5), "5 s"),
        (time_text(7200), "2 hours"),
        (time_text(3 * 86400), "3 days"),
    ],
)
def test_words(text: str, right: str) -> None:
    assert text == right


@pytest.mark.parametrize(("mode", "level"), [("shadow", "warning"), ("enforce", "ok")])
def test_a_switched_mode(mode: str, level: str) -> None:
    ModeSwitch.objects.switch(mode, 60)
    found = look()["catalog.mode"]
    assert (found.level, found.value["mode"]) == (level, mode)
    assert found.value["until"]
