"""A database that can't be read: what is known stays in force, and no request fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test import override_settings

from ratelimits import keeping
from ratelimits.conf import conf
from ratelimits.limiter import take
from ratelimits.models import PlanLimit, Tenant
from ratelimits.signals import plans_edited
from tests.processes import run_processes

from .edits import quotas

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("fresh", "acme"),
]


@contextmanager
def unreadable() -> Iterator[list[str]]:
    """Every query fails; yields those that were tried."""
    tried: list[str] = []

    def fail(execute: Any, sql: str, *args: Any) -> Any:
        tried.append(sql)
        raise OperationalError("disk I/O error")

    with connection.execute_wrapper(fail):
        yield tried


def test_the_last_known_limits_stay(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeping, "RETRY", 0.0)
    assert quotas("acme") == {"n": 10}
    PlanLimit.objects.filter(plan__slug="pro").update(rate="15/h")
    with unreadable() as tried:
        for _ in range(3):
            assert quotas("acme") == {"n": 10}
        assert tried
    assert quotas("acme") == {"n": 15}
    (error,) = (r.getMessage() for r in caplog.records if r.levelno == logging.ERROR)
    assert "can't be read" in error


def test_it_is_not_asked_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "RETRY", 60.0)
    quotas("acme")
    plans_edited.send(sender=None, using="default")
    with unreadable() as tried:
        for _ in range(20):
            assert quotas("acme") == {"n": 10}
        assert len(tried) == 1


@pytest.mark.parametrize(
    ("failure", "allowed", "status"),
    [("local", True, 200), ("allow", True, 200), ("deny", False, 503)],
)
def test_nothing_known(
    failure: str, allowed: bool, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with override_settings(RATELIMITS={"STORE_FAILURE": failure}):
        with unreadable():
            decisions = [take("acme") for _ in range(3)]
        assert quotas("acme") == {"n": 10}
    assert {(d.allowed, d.status, d.outcomes) for d in decisions} == {(allowed, status, ())}
    assert len(caplog.records) == 1


def test_plans_known_but_not_the_tenant() -> None:
    """Nobody is taken for one of the default plan just because he can't be looked up."""
    quotas("somebody")
    with unreadable():
        assert quotas("acme") == {}
    assert quotas("acme") == {"n": 10}


def take_unmigrated(index: int) -> list[Any]:
    return [[take("acme").allowed, take("acme").status] for _ in range(3)]


def test_a_database_without_tables() -> None:
    """In a process of its own, whose database is empty."""
    empty = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
    (answers,) = run_processes(take_unmigrated, 1, settings={"DATABASES": empty})
    assert answers == [[True, 200]] * 3


def test_no_database_at_all() -> None:
    """A project whose only limits are in code, behind the middleware."""
    (answers,) = run_processes(take_unmigrated, 1, settings={"DATABASES": {}})
    assert answers == [[True, 200]] * 3


def billing_is_down(key: str) -> str:
    raise ConnectionError(f"no answer about {key}\nERROR forged")


@pytest.mark.parametrize("plan", [billing_is_down, f"{__name__}.billing_is_down", "no.such.plan"])
def test_the_last_known_limits_stay_while_the_plan_is_not_known(
    plan: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeping, "RETRY", 0.0)
    assert quotas("acme") == {"n": 10}
    # Not override_settings, which forgets the limits that are known.
    monkeypatch.setattr(conf, "PLAN", plan)
    Tenant.objects.get(key="acme").save()
    assert [quotas("acme") for _ in range(3)] == [{"n": 10}] * 3
    (message,) = caplog.messages
    assert "plan is not known" in message
    assert "\n" not in message


@pytest.mark.parametrize(("failure", "status"), [("local", 200), ("allow", 200), ("deny", 503)])
def test_nothing_known_while_the_plan_is_not_known(
    failure: str, status: int, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.RATELIMITS = {"STORE_FAILURE": failure, "PLAN": billing_is_down}
    decisions = [take(key) for key in ("acme", "acme", "somebody")]
    assert {(d.status, d.outcomes) for d in decisions} == {(status, ())}
    assert len(caplog.records) == 1


@pytest.mark.parametrize("nothing", ["", None, False])
def test_a_plan_that_billing_does_not_name(nothing: Any, settings: Any) -> None:
    settings.RATELIMITS = {"PLAN": lambda key: nothing}
    assert quotas("acme") == {"n": 10}
    assert quotas("somebody") == {"n": 5}


def test_a_transaction_survives_it(acme: Tenant) -> None:
    """A take whose query fails leaves the caller's transaction usable."""
    with transaction.atomic():
        with unreadable():
            take("acme")
        acme.notes = "saved"
        acme.save()
    acme.refresh_from_db()
    assert acme.notes == "saved"
