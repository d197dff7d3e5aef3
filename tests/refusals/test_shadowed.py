"""Each refusal that a process gives by itself is one that the store would give."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from ratelimits import edits, limiter
from ratelimits.algorithms import Operation
from ratelimits.counting import decide
from ratelimits.limits import Limit
from ratelimits.models import PlanLimit, Tenant
from ratelimits.rates import Rate
from ratelimits.stores.base import Answer, Group, Slot
from ratelimits.stores.guarded import GuardedStore
from tests.doors import make_plan

ALGORITHMS = ("token_bucket", "fixed_window", "sliding_log", "sliding_counter")
# Those of one name are counted in one bucket, in different terms.
NAMES = ("a", "b", "b", "c")
SUBJECTS = ("caller", "address", "everyone")
# Nothing comes back by itself within a test, or much does.
PACES = {"still": ("h", 60), "flowing": ("s", 0.4)}


class Shadow:
    """Answers as the store beneath would, or else fails."""

    def __init__(self, guarded: GuardedStore, is_still: bool) -> None:
        self.guarded, self.is_still = guarded, is_still
        self.confirmed = 0
        self.counted_as: dict[tuple[str, str], Limit] = {}

    def run(self, operation: Operation, group: Group, costs: list[int]) -> Answer:
        answer = self.guarded.run(operation, group, costs)
        if not answer.local and operation is not Operation.PEEK:
            self.counted_as.update(((s.subject, s.limit.name), s.limit) for s in group.slots)
        if answer.local:
            truth = self.guarded.store.run(Operation.PEEK, group, costs)
            self.confirmed += not truth.allowed
            if not truth.allowed and self.is_still:
                # Others may have taken more since, and not less.
                told = zip(answer.fitted, truth.fitted, strict=True)
                assert all(before or not now for before, now in told), (group, costs, answer, truth)
            if truth.allowed:
                # The look came later, and may find what flowed in since.
                wait = decide(operation, group, costs, 1, answer).wait_us
                assert wait is not None, (group, costs, answer, truth)
                assert truth.now >= answer.now + wait, (group, costs, answer, truth)
        return answer

    def others_take(self, group: Group, costs: list[int]) -> None:
        """Another process, which knows the limits as this one does."""
        if all(self.counted_as.get((s.subject, s.limit.name)) == s.limit for s in group.slots):
            self.guarded.store.run(Operation.TAKE, group, costs)


def random_group(rng: random.Random, per: str) -> Group:
    slots = []
    for place in rng.sample(range(len(NAMES)), rng.randint(1, 3)):
        algorithm = ALGORITHMS[(place + rng.randrange(2)) % len(ALGORITHMS)]
        quota, mode = rng.randint(0, 12), rng.choice(["enforce", "enforce", "shadow"])
        limit = Limit(NAMES[place], Rate.parse(f"{quota}/{per}"), None, "", algorithm, mode)
        slots.append(Slot(limit, rng.choice(SUBJECTS)))
    kept = {(slot.subject, slot.limit.name): slot for slot in slots}
    return Group(tuple(kept.values()))


def steps(rng: random.Random, shadow: Shadow, per: str) -> Callable[[], None]:
    """One random thing after the other, by this process and by others."""
    groups = [random_group(rng, per) for _ in range(4)]

    def step() -> None:
        group = rng.choice(groups)
        costs = [rng.choice([0, 1, 1, 2, 5]) for _ in group.slots]
        kind = rng.random()
        if kind < 0.70:
            shadow.run(Operation.TAKE, group, costs)
        elif kind < 0.80:
            shadow.others_take(group, costs)
        elif kind < 0.86:
            shadow.run(Operation.CHARGE, group, costs)
        elif kind < 0.94:
            shadow.run(Operation.REFUND, group, costs)
        elif kind < 0.96:
            shadow.guarded.reset(Group(()), [rng.choice(SUBJECTS)])
        elif kind < 0.98:
            groups[rng.randrange(len(groups))] = random_group(rng, per)
        else:
            shadow.run(Operation.PEEK, group, costs)

    return step


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("pace", PACES)
def test_never_wrongly(pace: str, seed: int, guarded: GuardedStore, settings: Any) -> None:
    per, age = PACES[pace]
    settings.RATELIMITS = {**settings.RATELIMITS, "LOCAL_REFUSALS": age}
    shadow = Shadow(guarded, pace == "still")
    step = steps(random.Random(f"{pace} {seed}"), shadow, per)
    until = time.monotonic() + 0.5
    count = 0
    # By number, so that the same happens on a slow machine; in time, where time matters.
    while count < 500 or (pace == "flowing" and time.monotonic() < until):
        step()
        count += 1
    assert shadow.confirmed > 10


@pytest.mark.django_db(transaction=True)
def test_edits_are_found(guarded: GuardedStore, settings: Any) -> None:
    """Of the plan, of a tenant, and of the plan that a tenant is on."""
    settings.RATELIMITS = {**settings.RATELIMITS, "LOCAL_REFUSALS": 60, "WORKERS": 1}
    plan = make_plan("api 3/d")
    tenant = Tenant.objects.create(key="acme")
    rng = random.Random(1)
    seen = set()
    for number in range(60):
        asked = rng.randint(1, 4)
        refused = not limiter.take("acme", cost=asked).allowed
        seen.add(refused)
        if refused:
            # Whoever knows nothing asks the store.
            edits.shared.clear()
            assert not limiter.peek("acme", cost=asked).allowed
        if number % 3 == 0:
            PlanLimit.objects.filter(plan=plan).update(rate=f"{rng.randint(1, 40)}/d")
        elif number % 7 == 0:
            tenant.limits.update_or_create(name="api", defaults={"rate": f"{rng.randint(1, 60)}/d"})
        elif number % 11 == 0:
            limiter.refund("acme", cost=rng.randint(1, 9))
    assert seen == {True, False}
