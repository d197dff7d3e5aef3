"""The terms that rows mean, also rows that were written past the form."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ratelimits.checks.plans import check_rows
from ratelimits.client.rows import fault_of, load_terms
from ratelimits.models import Upstream, UpstreamLimit
from ratelimits.pacing.terms import Pace, Terms
from tests.tools.test_check import warned

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh")]

SECOND = 1_000_000


@pytest.fixture
def vendor() -> Upstream:
    return Upstream.objects.create(slug="vendor")


def terms() -> Terms:
    found = load_terms("vendor")
    assert found is not None
    return found


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]


def test_all_that_rows_say() -> None:
    vendor = Upstream.objects.create(
        slug="vendor",
        base_url="https://api.example.com",
        max_wait=7.5,
        guard=0.2,
        retry_statuses="403, 529",
    )
    window = vendor.limits.create(name="daily", rate="9000/d")
    bucket = vendor.limits.create(name="calls", rate="10/s", kind="bucket", burst=25, per="tenant")
    plain = vendor.limits.create(name="z", rate="100/5m", kind="bucket")
    assert terms() == Terms(
        "vendor",
        (
            Pace(str(window.pk), "daily", "window", 9000, 86400 * SECOND, 9000, "credential"),
            Pace(str(bucket.pk), "calls", "bucket", 10, SECOND, 25, "tenant"),
            Pace(str(plain.pk), "z", "bucket", 100, 300 * SECOND, 100, "credential"),
        ),
        7.5,
        0.2,
        frozenset({403, 529}),
        "https://api.example.com",
    )


def test_what_nothing_says(vendor: Upstream) -> None:
    assert terms() == Terms("vendor")


@pytest.mark.parametrize("seconds", [1e12, 1e14, 1.7e308])
def test_nothing_waits_for_longer_than_a_year(vendor: Upstream, seconds: float) -> None:
    """Of larger numbers some can be neither slept nor told."""
    Upstream.objects.update(max_wait=seconds)
    assert terms() == Terms("vendor", max_wait=366 * 86400)


def test_a_limit_that_is_renamed_stays_the_same(vendor: Upstream) -> None:
    limit = vendor.limits.create(name="n", rate="10/s")
    (before,) = terms().paces
    limit.name = "other"
    limit.save()
    (after,) = terms().paces
    assert (before.ident, before.name, after.name) == (after.ident, "n", "other")


@pytest.mark.parametrize("slug", ["other", "", "a\0b", "\ud800", "x" * 1000])
def test_slugs_of_nobody(vendor: Upstream, slug: str) -> None:
    assert load_terms(slug) is None


@pytest.mark.parametrize(
    "bad",
    [
        {"rate": "ten/m"},
        {"rate": "unlimited"},
        {"rate": "10/month"},
        {"rate": "0/s"},
        {"kind": "leaky"},
        {"per": "address"},
        {"burst": 5},
        {"burst": 0, "kind": "bucket"},
        {"burst": 2**60, "kind": "bucket"},
    ],
    ids=str,
)
def test_a_bad_limit_is_left_out(
    vendor: Upstream, bad: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    vendor.limits.create(name="good", rate="7/h")
    bad_one = vendor.limits.create(name="n", rate="10/s")
    UpstreamLimit.objects.filter(pk=bad_one.pk).update(**bad)
    for _ in range(3):
        assert [pace.name for pace in terms().paces] == ["good"]
    (complaint,) = complaints(caplog)
    assert f"UpstreamLimit {bad_one.pk} 'n' is left out" in complaint
    bad_one.refresh_from_db()
    warned("rows.bad", f"UpstreamLimit {bad_one.pk} “n”: {fault_of(bad_one)}")


def test_bad_statuses_are_left_out(vendor: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    Upstream.objects.update(retry_statuses="403\nERROR forged", max_wait=9)
    for _ in range(3):
        assert terms() == Terms("vendor", max_wait=9)
    (complaint,) = complaints(caplog)
    assert f"Upstream {vendor.pk} 'vendor' is partly left out" in complaint
    assert "\n" not in complaint
    vendor.refresh_from_db()
    warned("rows.bad", f"Upstream {vendor.pk} “vendor”: {fault_of(vendor)}")


def test_checks_name_bad_rows(vendor: Upstream) -> None:
    vendor.limits.create(name="n", rate="10/s")
    Upstream.objects.update(retry_statuses="200")
    UpstreamLimit.objects.update(kind="leaky")
    told = [str(message.msg) for message in check_rows(databases=["default"])]
    assert told[0].startswith('The upstream "vendor" is partly left out: ')
    assert told[1].startswith('The limit of an upstream "n" is left out: ')


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0, 11.0])
def test_seconds_that_no_database_should_hold(seconds: float) -> None:
    """SQLite refuses them, but not every database does."""
    assert bool(fault_of(Upstream(slug="vendor", guard=seconds)))
    assert bool(fault_of(Upstream(slug="vendor", max_wait=seconds))) is (seconds != 11.0)
