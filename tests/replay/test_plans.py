"""From the smallest plan to the largest."""

from __future__ import annotations

from typing import Any

import pytest

from ratelimits.limits import Limit
from ratelimits.models import Plan, PlanLimit
from ratelimits.plan_files.reading import read
from ratelimits.rates import Rate
from ratelimits.replay.plans import of_database, of_file, size


def limit(rate: str, name: str = "n", **more: Any) -> Limit:
    return Limit(name, Rate.parse(rate), **more)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ([limit("60/m")], [limit("600/m")]),
        # The tightest in the long run decides.
        ([limit("600/m"), limit("1000/d")], [limit("60/m")]),
        ([limit("60/m", burst=5)], [limit("60/m", burst=10)]),
        ([limit("60/m")], []),
        ([limit("60/m"), limit("1/m", scope="search")], [limit("60/m")]),
        ([limit("60/m"), limit("1/d", mode="shadow"), limit("1/m", scope="x")], [limit("60/m")]),
        ([limit("0/m")], [limit("1/366d")]),
        ([limit("31000/month", algorithm="fixed_window")], [limit("1020/d")]),
    ],
)
def test_sizes(smaller: list[Limit], larger: list[Limit]) -> None:
    assert size(smaller) < size(larger)


@pytest.mark.django_db
@pytest.mark.usefixtures("fresh")
def test_of_the_database() -> None:
    for slug, rate in (("big", "600/m"), ("endless", "unlimited"), ("small", "60/m")):
        Plan.objects.create(slug=slug).limits.create(name="n", rate=rate)
    big = Plan.objects.get(slug="big")
    big.limits.create(name="off", rate="1/m", mode="off")
    big.limits.create(name="bad", rate="2/m")
    PlanLimit.objects.filter(name="bad").update(rate="two/m")
    found = of_database().plans
    assert list(found) == ["small", "big", "endless"]
    assert [len(limits) for limits in found.values()] == [1, 1, 0]


def test_of_a_file() -> None:
    text = """
    [plans.big]
    name = "Big"
    limits.n = { rate = "600/m", burst = 7 }
    [plans.small]
    name = "Small"
    limits.n = { rate = "60/m" }
    limits.off = { rate = "1/m", mode = "off" }
    [service_limits.breaker]
    rate = "1/s"
    [scope_costs.search]
    cost = 5
    """
    sold = of_file(read(text))
    assert sold.costs == {"search": 5}
    found = sold.plans
    assert list(found) == ["small", "big"]
    assert [limit.burst for limit in found["big"]] == [7]
    assert [limit.name for limit in found["small"]] == ["n"]
