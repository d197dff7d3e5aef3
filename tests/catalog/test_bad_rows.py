"""Rows that were written past the form break no request."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ratelimits.limiter import take
from ratelimits.models import Plan, PlanLimit, ServiceLimit, Tenant

from .edits import quotas

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh")]

BAD: list[dict[str, Any]] = [
    {"rate": "ten/m"},
    {"rate": "10/"},
    {"rate": "10/0s"},
    {"rate": "-1/m"},
    {"rate": "1e9/s"},
    {"rate": ""},
    {"rate": "10000000000000/s"},
    {"rate": "10/month"},
    {"rate": "10/400d"},
    {"rate": "20000/m", "algorithm": "sliding_log"},
    {"algorithm": "leaky_bucket"},
    {"burst": 0},
    {"burst": 10**12},
    {"burst": 5, "algorithm": "fixed_window"},
]


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_bad_limit_of_a_plan_is_left_out(
    bad: dict[str, Any], plans: dict[str, Plan], caplog: pytest.LogCaptureFixture
) -> None:
    plans["free"].limits.create(name="good", rate="7/h")
    PlanLimit.objects.filter(plan=plans["free"], name="n").update(**bad)
    for _ in range(3):
        assert quotas("somebody") == {"good": 7}
        PlanLimit.objects.filter(name="good").update(mode="enforce")
    (complaint,) = complaints(caplog)
    assert "PlanLimit" in complaint
    assert "'n' is left out" in complaint


def test_a_bad_own_limit_leaves_the_plans(acme: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    acme.limits.create(name="n", rate="99/h")
    assert quotas("acme") == {"n": 99}
    acme.limits.update(rate="ten/m")
    assert quotas("acme") == {"n": 10}
    assert len(complaints(caplog)) == 1


@pytest.mark.parametrize("bad", ["rate", "algorithm"])
def test_a_row_forges_no_line_of_the_log(
    bad: str, plans: dict[str, Plan], caplog: pytest.LogCaptureFixture
) -> None:
    forged = "n\nERROR forged"
    PlanLimit.objects.filter(plan=plans["free"]).update(**{"name": forged, bad: forged})
    assert quotas("somebody") == {}
    (complaint,) = complaints(caplog)
    assert "\n" not in complaint


def test_a_shadow_limit_forges_no_line_of_the_log(
    plans: dict[str, Plan], caplog: pytest.LogCaptureFixture
) -> None:
    name = "n\nERROR forged"
    PlanLimit.objects.filter(plan=plans["free"]).update(name=name, rate="0/h", mode="shadow")
    caplog.set_level(logging.INFO)
    assert take("somebody").allowed
    (message,) = caplog.messages
    assert "\n" not in message


def test_a_plan_forges_no_line_of_the_log(
    plans: dict[str, Plan], settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.RATELIMITS = {"PLAN": lambda key: "x\nERROR forged"}
    assert quotas("somebody") == {"n": 5}
    (complaint,) = complaints(caplog)
    assert "\n" not in complaint


def test_a_bad_service_limit(plans: dict[str, Plan], caplog: pytest.LogCaptureFixture) -> None:
    ServiceLimit.objects.create(name="service", rate="100/s")
    ServiceLimit.objects.update(rate="ten/m")
    assert quotas("somebody") == {"n": 5}
    assert len(complaints(caplog)) == 1


def test_no_plan_at_all(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is limited, and one warning says what to do."""
    for _ in range(3):
        assert take("somebody").allowed
    (warning,) = (r.getMessage() for r in caplog.records if r.levelno == logging.WARNING)
    assert "manage.py ratelimits_starter" in warning
