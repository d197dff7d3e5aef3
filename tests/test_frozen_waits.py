"""A wait is kept to the microsecond, also with a clock that is frozen."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from freezegun import freeze_time
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ratelimits.limiter import peek, reset, take
from ratelimits.models import Plan
from tests.settings import redis_caches

BEGIN = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)
ALGORITHMS = ("token_bucket", "fixed_window", "sliding_log", "sliding_counter")


@pytest.fixture(params=["memory", "redis"])
def frozen(request: pytest.FixtureRequest, settings: Any, db: None) -> None:
    settings.RATELIMITS = {"CLOCK": "process", "STORE_TIMEOUT": 10}
    if request.param == "redis":
        settings.CACHES = redis_caches(request.getfixturevalue("redis_server").url)
    for algorithm in ALGORITHMS:
        plan = Plan.objects.create(slug=algorithm, name=algorithm, is_default=False)
        plan.limits.create(name="n", rate="7/m", algorithm=algorithm)
        plan.tenants.create(key=algorithm)


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(after=st.timedeltas(timedelta(0), timedelta(days=90)), cost=st.integers(1, 7))
def test_after_exactly_the_wait(algorithm: str, after: timedelta, cost: int) -> None:
    microsecond = timedelta(microseconds=1)
    with freeze_time(BEGIN + after) as clock:
        while take(algorithm, cost=2).allowed:
            clock.tick(timedelta(microseconds=333_333))
        refused = take(algorithm, cost=cost)
        if not refused.allowed:
            assert refused.wait is not None
            clock.tick(refused.wait - microsecond)
            assert peek(algorithm, cost=cost).wait == microsecond
            clock.tick(microsecond)
            assert take(algorithm, cost=cost).allowed
        reset(algorithm)
