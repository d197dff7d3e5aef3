from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ratelimits.models import Plan, Tenant
from tests.fresh import PATIENT, fresh, on_redis
from tests.settings import redis_caches

from .other import Other

__all__ = ["fresh", "on_redis"]


@pytest.fixture
def plans() -> dict[str, Plan]:
    """Free, which is the default, and pro. Each has one limit, of one name."""
    free = Plan.objects.create(slug="free", name="Free", is_default=True)
    free.limits.create(name="n", rate="5/h")
    pro = Plan.objects.create(slug="pro", name="Pro")
    pro.limits.create(name="n", rate="10/h")
    return {"free": free, "pro": pro}


@pytest.fixture
def acme(plans: dict[str, Plan]) -> Tenant:
    return Tenant.objects.create(key="acme", plan=plans["pro"])


@pytest.fixture(scope="module")
def running_other(start_server: Any, django_db_setup: None) -> Iterator[Other]:
    settings = {"CACHES": redis_caches(start_server("redis").url), "RATELIMITS": PATIENT}
    with Other(settings) as other:
        yield other


@pytest.fixture
def other(running_other: Other, on_redis: None) -> Other:
    """Another process on the same Redis and database, which knows nothing yet."""
    running_other.ask("forget")
    return running_other
