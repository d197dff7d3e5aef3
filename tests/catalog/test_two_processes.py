"""An edit acts on the very next take, in the process that made it and in any other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from ratelimits import catalog, edits
from ratelimits.exceptions import StoreUnavailable
from ratelimits.middleware import RateLimitMiddleware
from ratelimits.stores import get_store
from ratelimits.stores.guarded import GuardedStore
from tests.waiting import wait_until

from .edits import (
    COSTS,
    EDITS,
    cost_of_search,
    delete_a_limit,
    quotas,
    save_a_tenant,
    update_tenants,
)
from .other import Other

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("acme")]
each_edit = pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)


@each_edit
def test_an_edit_in_another_process(edit: Callable[[], None], other: Other) -> None:
    assert quotas("acme") == quotas("acme") == {"n": 10}
    other.ask(edit.__name__)
    assert quotas("acme") == EDITS[edit]


@each_edit
def test_an_edit_in_this_process(edit: Callable[[], None], other: Other) -> None:
    assert other.ask("quotas", "acme") == other.ask("quotas", "acme") == {"n": 10}
    assert quotas("acme") == {"n": 10}
    edit()
    assert quotas("acme") == EDITS[edit]
    assert other.ask("quotas", "acme") == EDITS[edit]


@pytest.mark.parametrize("edit", ["rename_a_tenant", "rename_tenants"])
def test_a_tenant_gets_its_limits_under_its_new_name(edit: str, other: Other) -> None:
    assert quotas("new") == {"n": 5}
    other.ask(edit)
    assert quotas("new") == {"n": 10}
    assert quotas("acme") == {"n": 5}


@pytest.mark.parametrize("edit", [save_a_tenant, update_tenants, delete_a_limit])
def test_an_edit_while_the_store_is_away(edit: Callable[[], None], other: Other) -> None:
    """As it is for a second after any timeout. Others are told as soon as it is back."""
    assert other.ask("quotas", "acme") == {"n": 10}
    guarded = get_store()
    assert isinstance(guarded, GuardedStore)
    guarded.breaker.trip(StoreUnavailable("away"))
    edit()
    assert other.ask("quotas", "acme") == {"n": 10}
    wait_until(lambda: not guarded.breaker.is_open)
    wait_until(lambda: other.ask("quotas", "acme") == EDITS[edit])


def test_edits_there_and_back(other: Other) -> None:
    """One after the other, with a take of each process in between."""
    for edit, expected in [
        ("save_a_tenant", {"n": 5}),
        ("bulk_create_own_limits", {"n": 5, "own": 99}),
        ("create_a_service_limit", {"n": 5, "own": 99, "service": 1000}),
        ("delete_a_tenant", {"n": 5, "service": 1000}),
    ]:
        other.ask(edit)
        assert quotas("acme") == expected
        assert other.ask("quotas", "acme") == expected


def test_costs_of_a_scope(other: Other) -> None:
    """Edited here or there, by every way, and in force for the next take of both."""
    assert cost_of_search("acme") == other.ask("cost_of_search", "acme") == 2
    for number, (edit, cost) in enumerate(COSTS.items()):
        if number % 2:
            edit()
        else:
            other.ask(edit.__name__)
        assert cost_of_search("acme") == other.ask("cost_of_search", "acme") == cost


def test_limits_for_one_who_had_none(other: Other) -> None:
    other.ask("delete_limits")
    assert quotas("acme") == quotas("acme") == {}
    other.ask("bulk_create_limits")
    assert quotas("acme") == {"more": 7}


def test_a_limit_per_address_in_the_middle_of_an_attack(
    other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is counted yet, another process's edit is looked for once a second."""
    middleware = RateLimitMiddleware(lambda request: HttpResponse())
    request = RequestFactory().get

    def status() -> int:
        return middleware(request("/nowhere", REMOTE_ADDR="192.0.2.9")).status_code  # type: ignore[union-attr]

    assert {status() for _ in range(20)} == {200}
    other.ask("close_to_addresses")
    monkeypatch.setattr(catalog, "LOOK", 0.0)
    edits.shared._due = 0.0
    assert status() == 429
