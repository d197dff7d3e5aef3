"""Async tests in Django's TestCase, whose transaction is a thread's and not the loop's."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import TestCase

from ratelimits import edits
from ratelimits.effects import Flow
from ratelimits.limiter import atake, take
from ratelimits.models import Plan, PlanLimit, Tenant

from .edits import update_limits


async def aquotas(key: str) -> dict[str, int]:
    decision = await atake(key, cost=0)
    return {outcome.name: outcome.limit.quota for outcome in decision.outcomes}


async def make(rate: str) -> PlanLimit:
    plan = await Plan.objects.acreate(slug="free", name="free", is_default=True)
    return await PlanLimit.objects.acreate(plan=plan, name="n", rate=rate)


class InATestCase(TestCase):
    """Each of these knows only its own plans, whichever of them comes first."""

    async def test_edits_act_at_once(self) -> None:
        limit = await make("5/h")
        self.assertEqual(await aquotas("somebody"), {"n": 5})
        limit.rate = "50/h"
        await limit.asave()
        self.assertEqual(await aquotas("somebody"), {"n": 50})

    async def test_other_plans(self) -> None:
        await make("7/h")
        self.assertEqual(await aquotas("somebody"), {"n": 7})

    async def test_edits_of_a_tenant(self) -> None:
        await make("7/h")
        self.assertEqual(await aquotas("acme"), {"n": 7})
        tenant = await Tenant.objects.acreate(key="acme")
        await tenant.limits.acreate(name="n", rate="9/h")
        self.assertEqual(await aquotas("acme"), {"n": 9})

    def test_no_plans(self) -> None:
        self.assertEqual(take("somebody").outcomes, ())

    async def test_nothing_is_left_in_the_shared_catalog(self) -> None:
        await make("7/h")
        await aquotas("somebody")
        self.assertIsNone(edits.shared._plans)


def edit_elsewhere() -> None:
    update_limits()
    connection.close()


def waits(flow: Flow[Any]) -> bool:
    """Whether a flow goes to a thread for its first step."""
    try:
        next(flow)
    except StopIteration:
        return False
    return True


@pytest.mark.django_db(transaction=True)
def test_a_thread_is_asked_only_while_somebody_edits(acme: Tenant) -> None:
    with transaction.atomic():
        assert not waits(edits.catalog())
        update_limits()
        assert waits(edits.catalog())
    assert not waits(edits.catalog())
    thread = threading.Thread(target=edit_elsewhere)
    thread.start()
    thread.join()
    assert not waits(edits.catalog())


@pytest.mark.django_db(transaction=True)
def test_transactions_that_are_over_leave_nothing(acme: Tenant) -> None:
    """In a process that edits, and never takes."""
    for _ in range(3):
        with transaction.atomic():
            update_limits()
    (changes,) = edits._open.values()
    assert len(changes.edits) == 1
