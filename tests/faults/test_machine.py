"""Any faults in any order, under load: nothing fails, waits, or is refused without a reason."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ratelimits.models import Plan, Tenant
from tests.processes import run_processes
from tests.servers import RedisServer
from tests.settings import redis_caches

from .machine import BURST, PLANS, RATES, Machine, close_the_store, taking

pytestmark = pytest.mark.django_db(transaction=True)


def most(results: list[dict[str, Any]], losses: int) -> float:
    """How much can be admitted, as documented.

    By the store a burst, one more for each time that it lost its memory, and what flows in. By
    the processes, each time the store is away, each its part of a burst; and for as long, all
    together once more what flows in.
    """
    flow = max(RATES) * max(result["seconds"] for result in results)
    outages = sum(result["outages"] for result in results)
    return (1 + losses) * BURST + flow + outages * BURST // len(results) + flow


@pytest.mark.parametrize(
    ("processes", "seconds"), [(2, 4), pytest.param(4, 80, marks=pytest.mark.long)]
)
def test_random_faults(processes: int, seconds: float, server: RedisServer, settings: Any) -> None:
    for key, rate in PLANS.items():
        plan = Plan.objects.create(slug=key, name=key)
        plan.limits.create(name="api", rate=rate, burst=BURST if key == "small" else None)
        Tenant.objects.create(key=key, plan=plan)
    seed = random.randrange(10**9)
    print("seed", seed)
    # Edits are told through the same store.
    shared = {
        "CACHES": redis_caches(server.url),
        "RATELIMITS": {"WORKERS": processes, "CATALOG_TTL": 5},
    }
    settings.CACHES, settings.RATELIMITS = shared["CACHES"], shared["RATELIMITS"]
    machine = Machine(server, seed)
    results = run_processes(
        taking,
        processes,
        seconds,
        settings=shared,
        timeout=seconds + 60,
        meanwhile=lambda: machine.run(seconds - 1),
    )
    close_the_store()
    print(machine.done, results)
    assert all(result["wrong"] == 0 and result["came back"] for result in results)
    assert max(result["worst"] for result in results) < 3
    assert max(result["median"] for result in results) < 0.02
    admitted = sum(result["admitted"] for result in results)
    print("admitted", admitted, "of at most", most(results, machine.losses))
    assert BURST <= admitted <= most(results, machine.losses)
