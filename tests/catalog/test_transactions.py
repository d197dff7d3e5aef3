"""An edit in a transaction is seen there at once, elsewhere on commit, nowhere after a rollback."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, connections, transaction

from ratelimits import edits, keeping
from ratelimits.catalog import Caller
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


def test_an_edit_that_an_open_transaction_can_not_see(
    on_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads what it sees, and nobody goes on with that."""
    monkeypatch.setattr(keeping, "OLD_SNAPSHOT", 0.0)
    assert quotas("acme") == OLD
    with transaction.atomic():
        # What others committed is told by the store, and not to be seen here yet.
        edits.Edit(plans=True, tenants=("acme",)).publish()
        assert quotas("acme") == OLD
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ratelimits_planlimit SET rate = '15/h' WHERE rate = '10/h'")
    assert quotas("acme") == EDITED


@pytest.mark.parametrize(
    ("sees_commits", "options", "is_short"),
    [(False, {}, True), (True, {}, False), (True, {"isolation_level": 3}, True)],
)
def test_how_long_is_kept_what_a_transaction_read(
    sees_commits: bool, options: dict[str, Any], is_short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas("acme")
    assert kept_seconds() > 20
    edits.shared.clear()
    with transaction.atomic():
        if sees_commits:
            monkeypatch.setattr(keeping, "READ_COMMITTED", [connection.vendor])
        monkeypatch.setitem(connections["default"].settings_dict, "OPTIONS", options)
        loaded = edits.shared.load(Caller("acme"), "")
        assert [slot.limit.quota for slot in loaded.slots] == [10]
        assert (kept_seconds() <= 1) is is_short
        monkeypatch.undo()


def test_a_transactions_own_catalog_is_kept(on_redis: RedisServer) -> None:
    with transaction.atomic():
        update_limits()
        assert quotas("acme") == EDITED
        (changes,) = edits._open.values()
        assert changes.catalog._plans is not None
        assert changes.catalog._plans.until - time.monotonic() > 1000


def kept_seconds() -> float:
    """How long the shared catalog keeps the least of what it has."""
    plans = edits.shared._plans
    assert plans is not None
    kept = (plans, *edits.shared._tenants.values())
    return min(one.until for one in kept) - time.monotonic()


def test_takes_count_even_if_the_transaction_is_rolled_back(on_redis: RedisServer) -> None:
    with suppress(Undo), transaction.atomic():
        assert take("acme", cost=10).allowed
        raise Undo
    assert not take("acme").allowed
