"""A tenant's own limit that has expired is as if it were not there, from that second on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.test import override_settings
from freezegun import freeze_time

from ratelimits.limiter import take
from ratelimits.models import Tenant

from .edits import quotas

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh")]

NOON = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)


@pytest.fixture(autouse=True)
def clock(fresh: None) -> Iterator[Any]:
    """The process's clock counts, and stands still at noon."""
    frozen = freeze_time(NOON, ignore=["_pytest"])
    with override_settings(RATELIMITS={"CLOCK": "process"}), frozen as clock:
        yield clock


def test_it_ends_on_the_second(acme: Tenant, clock: Any, django_assert_num_queries: Any) -> None:
    """Without a query: what is warm knows when it ends."""
    acme.limits.create(name="n", rate="99/h", expires_at=NOON + timedelta(seconds=10))
    acme.limits.create(name="own", rate="7/h", expires_at=NOON + timedelta(seconds=12))
    assert quotas("acme") == {"n": 99, "own": 7}
    with django_assert_num_queries(0):
        clock.move_to(NOON + timedelta(seconds=9, microseconds=999_999))
        assert quotas("acme") == {"n": 99, "own": 7}
        clock.move_to(NOON + timedelta(seconds=10))
        assert quotas("acme") == {"n": 10, "own": 7}
        clock.move_to(NOON + timedelta(seconds=12))
        assert quotas("acme") == {"n": 10}


def test_one_that_had_expired_before(acme: Tenant) -> None:
    acme.limits.create(name="n", rate="99/h", expires_at=NOON)
    assert quotas("acme") == {"n": 10}


def test_what_was_used_of_it_stays_used(acme: Tenant, clock: Any) -> None:
    acme.limits.create(name="n", rate="20/h", expires_at=NOON + timedelta(seconds=10))
    assert take("acme", cost=15).allowed
    clock.move_to(NOON + timedelta(seconds=10))
    decision = take("acme")
    assert not decision.allowed
    assert decision.retry_after == 360


def test_waits_are_kept_with_a_frozen_clock(acme: Tenant, clock: Any) -> None:
    """The promise of wait, through the limiter."""
    assert take("acme", cost=10).allowed
    wait = take("acme", cost=3).wait
    assert wait == timedelta(minutes=18)
    clock.tick(wait - timedelta(microseconds=1))
    assert not take("acme", cost=3).allowed
    clock.tick(timedelta(microseconds=1))
    assert take("acme", cost=3).allowed
