"""An edit in a transaction is seen there at once, elsewhere on commit, nowhere after a rollback."""

from __future__ import annotations

from contextlib import suppress

import pytest
from django.db import transaction

from ratelimits.limiter import take
from ratelimits.models import PlanLimit, Tenant
from tests.servers import RedisServer

from .edits import delete_a_tenant, quotas, save_a_tenant, update_limits
from .other import Other

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("acme")]

OLD = {"n": 10}
EDITED = {"n": 15}
FREE = {"n": 5}


class Undo(Exception):
    """Rolls back."""


def test_others_see_it_on_commit(other: Other) -> None:
    assert quotas("acme") == other.ask("quotas", "acme") == OLD
    with transaction.atomic():
        update_limits()
        assert quotas("acme") == EDITED
        assert other.ask("quotas", "acme") == OLD
        assert quotas("acme") == EDITED
    assert quotas("acme") == EDITED
    assert other.ask("quotas", "acme") == EDITED


def test_a_process_that_first_looks_meanwhile(other: Other) -> None:
    """What it reads before the commit is not what it goes on with."""
    with transaction.atomic():
        save_a_tenant()
        assert other.ask("quotas", "acme") == OLD
    assert other.ask("quotas", "acme") == FREE


@pytest.mark.parametrize("warm", [True, False])
def test_a_rollback_leaves_nothing(warm: bool, other: Other, on_redis: RedisServer) -> None:
    if warm:
        assert quotas("acme") == OLD
    with suppress(Undo), transaction.atomic():
        update_limits()
        delete_a_tenant()
        assert quotas("acme") == FREE
        raise Undo
    assert quotas("acme") == OLD
    assert other.ask("quotas", "acme") == OLD
    assert len(list(on_redis.client().scan_iter())) == 1, "one bucket, and no version"


def test_a_rollback_to_a_savepoint(other: Other) -> None:
    assert quotas("acme") == other.ask("quotas", "acme") == OLD
    with transaction.atomic():
        with suppress(Undo), transaction.atomic():
            update_limits()
            assert quotas("acme") == EDITED
            raise Undo
        assert quotas("acme") == OLD
    assert quotas("acme") == other.ask("quotas", "acme") == OLD


def test_an_edit_before_the_savepoint_stays(other: Other) -> None:
    assert quotas("acme") == other.ask("quotas", "acme") == OLD
    with transaction.atomic():
        update_limits()
        with suppress(Undo), transaction.atomic():
            save_a_tenant()
            assert quotas("acme") == FREE
            raise Undo
        assert quotas("acme") == EDITED
        assert other.ask("quotas", "acme") == OLD
    assert quotas("acme") == other.ask("quotas", "acme") == EDITED


def test_transactions_one_after_the_other(on_redis: RedisServer) -> None:
    """Nothing of the first is left in the second."""
    with suppress(Undo), transaction.atomic():
        update_limits()
        assert quotas("acme") == EDITED
        raise Undo
    with transaction.atomic():
        assert quotas("acme") == OLD
        save_a_tenant()
        assert quotas("acme") == FREE
    with transaction.atomic():
        assert quotas("acme") == FREE


def test_two_edits_in_one_transaction(on_redis: RedisServer) -> None:
    with transaction.atomic():
        for rate in (11, 12, 13):
            PlanLimit.objects.filter(plan__slug="pro").update(rate=f"{rate}/h")
            assert quotas("acme") == {"n": rate}
        Tenant.objects.get(key="acme").limits.create(name="own", rate="1/s")
        assert quotas("acme") == {"n": 13, "own": 1}
    assert quotas("acme") == {"n": 13, "own": 1}


def test_takes_count_even_if_the_transaction_is_rolled_back(on_redis: RedisServer) -> None:
    with suppress(Undo), transaction.atomic():
        assert take("acme", cost=10).allowed
        raise Undo
    assert not take("acme").allowed
