from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from ratelimits.limits import Limit
from ratelimits.models import Plan, Tenant
from ratelimits.raising import burst_for, lowers, raised
from ratelimits.rates import Rate
from ratelimits.standing import standing_of
from tests.doors import make_plan


def rate(text: str) -> Rate:
    return Rate.parse(text)


@pytest.mark.parametrize(
    ("new", "before", "is_less"),
    [
        ("99/m", "100/m", True),
        ("100/m", "100/m", False),
        ("2/s", "100/m", False),
        ("1/s", "100/m", True),
        ("unlimited", "100/m", False),
        ("100/m", "unlimited", True),
        ("1/d", "0/m", False),
        ("0/m", "1/d", True),
        ("9/month", "10/month", True),
        ("11/month", "10/month", False),
        ("1/d", "10/month", False),
    ],
)
def test_whether_a_rate_is_less(new: str, before: str, is_less: bool) -> None:
    assert lowers(rate(new), rate(before)) is is_less


@pytest.mark.parametrize(
    ("new", "before", "burst", "grown"),
    [
        ("1000/m", "100/m", 20, 200),
        ("1000/m", "100/m", None, None),
        ("100/s", "100/m", 20, 1200),
        ("150/m", "100/m", 3, 5),
        ("unlimited", "100/m", 20, None),
        ("1000000000000/s", "1/d", 10**9, 10**12),
    ],
)
def test_the_burst_grows_as_the_rate_does(
    new: str, before: str, burst: int | None, grown: int | None
) -> None:
    assert burst_for(rate(new), Limit("api", rate(before), burst)) == grown


@pytest.mark.django_db
class TestRows:
    @pytest.fixture
    def tenant(self) -> Tenant:
        return Tenant.objects.create(key="acme", plan=make_plan("search 5/m search", slug="pro"))

    @pytest.fixture
    def until(self) -> Any:
        return timezone.now() + timedelta(days=1)

    def test_it_is_counted_as_the_plans(self, tenant: Tenant, until: Any) -> None:
        Plan.objects.get().limits.update(algorithm="sliding_log", on_store_failure="deny")
        row = raised(tenant, "search", rate("9/m"), until)
        row.full_clean()
        row.save()
        assert (row.scope, row.algorithm, row.on_store_failure, row.mode) == (
            "search",
            "sliding_log",
            "deny",
            "enforce",
        )
        (found,) = standing_of("acme").limits
        assert found.origin.then is found.origin.replaces is not None

    def test_an_added_one_is_as_before_afterwards(self, tenant: Tenant, until: Any) -> None:
        tenant.limits.create(name="extra", rate="3/d", algorithm="fixed_window")
        raised(tenant, "extra", rate("9/d"), until).save()
        found = {each.limit.name: each for each in standing_of("acme").limits}["extra"]
        assert found.limit.algorithm == "fixed_window"
        assert found.origin.replaces is None
        assert found.origin.then is not None
        assert str(found.origin.then.rate) == "3/d"

    def test_what_is_not_there_is_not_raised(self, tenant: Tenant, until: Any) -> None:
        with pytest.raises(ValueError, match="no usable limit 'other'"):
            raised(tenant, "other", rate("9/m"), until)

    def test_a_bad_row_is_not_raised(self, tenant: Tenant, until: Any) -> None:
        tenant.limits.create(name="extra", rate="3/d")
        tenant.limits.update(rate="ten")
        with pytest.raises(ValueError, match="no usable limit 'extra'"):
            raised(tenant, "extra", rate("9/m"), until)

    def test_instead_of_a_bad_row_the_plans_is_raised(self, tenant: Tenant, until: Any) -> None:
        tenant.limits.create(name="search", rate="3/d", algorithm="fixed_window")
        tenant.limits.update(rate="ten")
        row = raised(tenant, "search", rate("9/m"), until)
        row.save()
        assert (row.algorithm, row.scope, row.rate_after) == ("token_bucket", "search", "")
        assert str(standing_of("acme").limits[0].limit.rate) == "9/m"
