from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from freezegun import freeze_time

from ratelimits.client.errors import RetryLater
from ratelimits.client.tasks import parks
from tests.client.deferring import IMMEDIATE

NOW = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)
QUEUES = {"QUEUES": ["default", "calls"]}


@pytest.fixture
def clock() -> Iterator[Any]:
    with freeze_time(NOW) as frozen:
        yield frozen


@pytest.fixture
def jobs(settings: Any, clock: Any) -> Iterator[Any]:
    """The module of tasks, whose backend a test has for itself."""
    settings.TASKS = {"default": {"BACKEND": "tests.client.deferring.Later", **QUEUES}}
    # Not earlier: tasks ask for their backend when they are made.
    from tests.client import jobs

    jobs.came.clear()
    jobs.refusals.clear()
    yield jobs


def run_all(task: Any, clock: Any, step: float) -> list[Any]:
    """One after the other, each when it may."""
    backend, results = task.get_backend(), []
    while backend.waiting:
        (result,) = backend.run_due()
        results.append(result)
        clock.tick(step)
        assert len(results) < 20
    return results


def test_parked_and_otherwise_the_same(jobs: Any, clock: Any) -> None:
    jobs.refusals["push"] = (3, 90.5)
    jobs.push.using(priority=9).enqueue(5, to="x")
    results = run_all(jobs.push, clock, 90.5)
    assert jobs.came == [("push", 5, "x")] * 4
    assert results[-1].return_value == "done"
    assert [one.return_value for one in results[:-1]] == [{"parked": one.id} for one in results[1:]]
    assert {(one.task.priority, one.task.queue_name) for one in results} == {(9, "calls")}
    whens = [one.task.run_after for one in results[1:]]
    assert whens == [NOW + timedelta(seconds=90.5 * parked) for parked in (1, 2, 3)]


def test_nothing_comes_early(jobs: Any, clock: Any) -> None:
    jobs.refusals["push"] = (1, 90.5)
    jobs.push.enqueue(5, to="x")
    backend = jobs.push.get_backend()
    assert len(backend.run_due()) == 1
    clock.tick(90.4)
    assert backend.run_due() == []


def test_a_very_long_wait_is_looked_at_daily(jobs: Any) -> None:
    jobs.refusals["push"] = (1, 1e15)
    jobs.push.enqueue(5, to="x")
    backend = jobs.push.get_backend()
    backend.run_due()
    assert backend.waiting[0].task.run_after == NOW + timedelta(days=1)


def test_not_for_ever(jobs: Any, clock: Any) -> None:
    jobs.refusals["impatient"] = (9, 1)
    jobs.impatient.enqueue()
    results = run_all(jobs.impatient, clock, 1)
    assert [one.status for one in results] == ["SUCCESSFUL", "SUCCESSFUL", "FAILED"]
    assert results[-1].errors[0].exception_class is RetryLater


def test_async(jobs: Any, clock: Any) -> None:
    jobs.refusals["apush"] = (2, 1)
    jobs.apush.enqueue(5)
    assert run_all(jobs.apush, clock, 1)[-1].return_value == "done"
    assert jobs.came == [("apush", 5)] * 3


def test_where_nothing_can_be_deferred(jobs: Any, settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": IMMEDIATE, **QUEUES}}
    jobs.refusals["push"] = (1, 1)
    result = jobs.push.enqueue(5, to="x")
    assert (result.status, result.errors[0].exception_class) == ("FAILED", RetryLater)
    assert jobs.push.enqueue(5, to="x").return_value == "done"


def test_called_by_itself(jobs: Any) -> None:
    jobs.refusals["push"] = (1, 1)
    with pytest.raises(RetryLater):
        jobs.push.call(None, 5, to="x")
    assert jobs.push.call(None, 5, to="x") == "done"


def test_above_task_instead_of_below(jobs: Any) -> None:
    with pytest.raises(TypeError, match="between"):
        parks(jobs.push)
