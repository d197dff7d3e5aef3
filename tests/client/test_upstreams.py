"""Terms are kept, and every edit of them is told to all processes through the store."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, connections, transaction
from django.db.models import F, Value
from django.db.models.functions import Concat

from ratelimits import keeping
from ratelimits.client import NeverPasses, upstream, upstreams
from ratelimits.client.rows import load_terms
from ratelimits.client.upstreams import forget, known, version_key, warm
from ratelimits.effects import drive
from ratelimits.exceptions import CatalogUnavailable, StoreUnavailable
from ratelimits.models import Upstream, UpstreamLimit
from ratelimits.stores import get_store
from ratelimits.stores.guarded import GuardedStore
from tests.catalog.test_unreadable import unreadable
from tests.fresh import on_redis
from tests.waiting import wait_until

__all__ = ["on_redis"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("on_redis", "vendor"),
]


@pytest.fixture
def vendor(on_redis: Any) -> Upstream:
    vendor = Upstream.objects.create(slug="vendor")
    vendor.limits.create(name="n", rate="10/s")
    return vendor


def rates(slug: str = "vendor") -> dict[str, int] | None:
    """By name; None if there is no such upstream."""
    terms = known(slug).terms
    return None if terms is None else {pace.name: pace.quota for pace in terms.paces}


def published(slug: str = "vendor") -> str:
    store = get_store()
    assert store is not None
    return store.versions([version_key(slug)])[0]


def save_a_limit() -> None:
    limit = UpstreamLimit.objects.get()
    limit.rate = "15/s"
    limit.save()


def update_limits() -> None:
    UpstreamLimit.objects.update(rate="15/s")


def update_limits_of_an_upstream() -> None:
    Upstream.objects.get().limits.update(rate="15/s")


def bulk_update_limits() -> None:
    limit = UpstreamLimit.objects.get()
    limit.rate = "15/s"
    UpstreamLimit.objects.bulk_update([limit], ["rate"])


def bulk_create_limits() -> None:
    UpstreamLimit.objects.bulk_create(
        [UpstreamLimit(upstream=Upstream.objects.get(), name="m", rate="7/s")]
    )


def delete_a_limit() -> None:
    UpstreamLimit.objects.get().delete()


def delete_limits() -> None:
    UpstreamLimit.objects.all().delete()


def move_a_limit() -> None:
    limit = UpstreamLimit.objects.get()
    limit.upstream = Upstream.objects.create(slug="other")
    limit.save()


def delete_an_upstream() -> None:
    Upstream.objects.get(slug="vendor").delete()


def delete_upstreams() -> None:
    Upstream.objects.all().delete()


def rename_an_upstream() -> None:
    vendor = Upstream.objects.get()
    vendor.slug = "new"
    vendor.save()


def rename_upstreams() -> None:
    Upstream.objects.filter(slug="vendor").update(slug="new")


def write_sql_and_refresh() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ratelimits_upstreamlimit SET rate = '15/s'")
    call_command("ratelimits_refresh", verbosity=0)


EDITS: dict[Callable[[], None], dict[str, int] | None] = {
    save_a_limit: {"n": 15},
    update_limits: {"n": 15},
    update_limits_of_an_upstream: {"n": 15},
    bulk_update_limits: {"n": 15},
    bulk_create_limits: {"n": 10, "m": 7},
    delete_a_limit: {},
    delete_limits: {},
    move_a_limit: {},
    delete_an_upstream: None,
    delete_upstreams: None,
    rename_an_upstream: None,
    rename_upstreams: None,
    write_sql_and_refresh: {"n": 15},
}


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_an_edit_acts_here_and_is_told_to_others(edit: Callable[[], None]) -> None:
    assert rates() == {"n": 10}
    before = published()
    edit()
    assert rates() == EDITS[edit]
    assert known("vendor").version == published() != before


@pytest.mark.parametrize("edit", [rename_an_upstream, rename_upstreams])
def test_a_new_slug_is_told_too(edit: Callable[[], None]) -> None:
    assert rates("new") is None
    edit()
    assert rates("new") == {"n": 10}
    assert known("new").version == published("new") != ""


def test_slugs_that_nobody_knows_beforehand() -> None:
    assert rates("the-vendor") is None
    Upstream.objects.update(slug=Concat(Value("the-"), F("slug")))
    assert rates("the-vendor") == {"n": 10}
    assert published("the-vendor")


def test_a_warm_one_asks_no_database(django_assert_num_queries: Any) -> None:
    assert warm("vendor") is None
    found = known("vendor")
    with django_assert_num_queries(0):
        assert known("vendor") == warm("vendor") == found


def test_what_others_edited(django_assert_num_queries: Any) -> None:
    """The store tells of another version: the rows are read once, and under that."""
    known("vendor")
    forget("vendor", "another")
    assert warm("vendor") is None
    with django_assert_num_queries(2):
        assert known("vendor").version == "another"
    with django_assert_num_queries(0):
        assert known("vendor").version == "another"


def test_the_next_call_goes_by_what_others_edited() -> None:
    gate = upstream("vendor", "key").gate()
    drive(gate.enter())
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ratelimits_upstreamlimit SET rate = '3/s'")
    store = get_store()
    assert store is not None
    store.set_versions({version_key("vendor"): "another"}, 60)
    with pytest.raises(NeverPasses, match="has 3 at most"):
        drive(gate.enter(4))


def test_an_edit_while_the_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before it is not kept."""

    def load(slug: str) -> Any:
        terms = load_terms(slug)
        if published() == version:
            in_a_thread(update_limits)
        return terms

    version = published()
    monkeypatch.setattr(upstreams, "load_terms", load)
    assert rates() == {"n": 10}
    assert rates() == {"n": 15}


class Undo(Exception):
    """Rolls back."""


def test_an_edit_in_a_transaction() -> None:
    """Seen there at once, elsewhere on commit."""
    assert rates() == {"n": 10}
    before = published()
    with transaction.atomic():
        update_limits()
        assert rates() == {"n": 15}
        assert in_a_thread(rates) == {"n": 10}
        assert published() == before
    assert rates() == {"n": 15}
    assert published() != before


def test_a_rollback_leaves_nothing() -> None:
    before = published()
    with suppress(Undo), transaction.atomic():
        delete_upstreams()
        assert rates() is None
        raise Undo
    assert rates() == {"n": 10}
    assert published() == before


def in_a_thread(ask: Callable[[], Any]) -> Any:
    answers = []

    def run() -> None:
        answers.append(ask())
        connections.close_all()

    thread = Thread(target=run)
    thread.start()
    thread.join()
    return answers[0]


def test_the_last_known_terms_stay(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeping, "RETRY", 0.0)
    assert rates() == {"n": 10}
    update_limits()
    with unreadable() as tried:
        for _ in range(3):
            assert rates() == {"n": 10}
        assert len(tried) == 3
    assert rates() == {"n": 15}
    (error,) = (r.getMessage() for r in caplog.records if r.levelno == logging.ERROR)
    assert "can't be read" in error


@pytest.mark.parametrize("version", [None, "heard"])
def test_nothing_known(version: str | None) -> None:
    """Which is not to know that there is none."""
    upstreams.forget_all()
    if version:
        forget("vendor", version)
    with unreadable(), pytest.raises(CatalogUnavailable, match="disk I/O error"):
        known("vendor")
    assert rates() == {"n": 10}


def test_a_transaction_survives_it(vendor: Upstream) -> None:
    with transaction.atomic():
        Upstream.objects.update(name="edited")
        with suppress(CatalogUnavailable), unreadable():
            known("vendor")
        assert rates() == {"n": 10}
    vendor.refresh_from_db()
    assert vendor.name == "edited"


def test_an_edit_while_the_store_is_away() -> None:
    """It acts here, and others are told when the store is back."""
    before = published()
    guarded = get_store()
    assert isinstance(guarded, GuardedStore)
    guarded.breaker.trip(StoreUnavailable("away"))
    update_limits()
    assert rates() == {"n": 15}
    wait_until(lambda: not guarded.breaker.is_open)
    wait_until(lambda: known("vendor").version == published() != before)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstreams, "MOST", 3)
    for number in range(9):
        assert rates(f"slug-{number}") is None
    assert len(upstreams._kept) == 3


def test_versions_are_no_names() -> None:
    assert "vendor" not in version_key("vendor")
    assert version_key("vendor") != version_key("other")


def test_a_failed_statement_is_no_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(slug: str) -> Any:
        raise OperationalError("gone")

    upstreams.forget_all()
    monkeypatch.setattr(upstreams, "load_terms", load)
    with pytest.raises(CatalogUnavailable, match="gone"):
        known("vendor")
