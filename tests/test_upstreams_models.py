"""What operators may write of other people's APIs."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, transaction

from ratelimits.models import Upstream, UpstreamLimit

pytestmark = pytest.mark.django_db


@pytest.fixture
def vendor() -> Upstream:
    return Upstream.objects.create(slug="vendor")


def errors_of(row: Any) -> dict[str, list[str]]:
    try:
        row.full_clean(exclude=["upstream"])
    except ValidationError as error:
        return error.message_dict
    return {}


def errors(**values: Any) -> dict[str, list[str]]:
    return errors_of(Upstream(**{"slug": "new", **values}))


def limit_errors(rate: str, **values: Any) -> dict[str, list[str]]:
    return errors_of(UpstreamLimit(name="n", rate=rate, **values))


def test_defaults(vendor: Upstream) -> None:
    assert (vendor.max_wait, vendor.guard, vendor.retry_statuses) == (5, 0.05, "")
    limit = vendor.limits.create(name="n", rate="10/s")
    assert (limit.burst, limit.kind, limit.per) == (None, "window", "credential")
    assert (str(vendor), str(limit)) == ("vendor", "n: 10 requests per second")
    assert errors() == {}


def test_names(vendor: Upstream) -> None:
    assert list(errors(slug="vendor")) == ["slug"]
    assert list(errors(name="a\nb")) == ["name"]
    assert str(Upstream(slug="s", name="The vendor")) == "The vendor"
    vendor.limits.create(name="n", rate="1/s")
    with pytest.raises(ValidationError, match="of this name already"):
        UpstreamLimit(upstream=vendor, name="n", rate="2/s").full_clean()


@pytest.mark.parametrize("seconds", [{"max_wait": -1}, {"guard": -0.01}, {"guard": 10.5}], ids=str)
def test_seconds_out_of_range(seconds: dict[str, float]) -> None:
    assert list(errors(**seconds)) == list(seconds)
    with pytest.raises(IntegrityError), transaction.atomic():
        Upstream.objects.create(slug="new", **seconds)


@pytest.mark.parametrize("field", ["max_wait", "guard"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_seconds_that_are_no_number(field: str, value: float) -> None:
    assert "number of seconds" in errors(**{field: value})[field][0]


@pytest.mark.parametrize("value", ["", "403", "403, 529", "403,529", " 503  509 ", "999"])
def test_statuses(value: str) -> None:
    assert errors(retry_statuses=value) == {}


@pytest.mark.parametrize(
    "value", ["200", "403, 204", "abc", "1000", "99", "-403", "4\u06603", "403;529"]
)
def test_statuses_that_refuse_nothing(value: str) -> None:
    assert "is not the status of a refusal" in errors(retry_statuses=value)["retry_statuses"][0]


@pytest.mark.parametrize(
    "value", ["https://api.example.com/v1", "http://billing:8000", "https://[::1]:8443/", ""]
)
def test_base_urls(value: str) -> None:
    assert errors(base_url=value) == {}


@pytest.mark.parametrize(
    "value",
    [
        "api.example.com",
        "ftp://example.com",
        "https://",
        "https://[::1",
        "https://example.com:99999",
        "https://exa mple.com",
        "https://example.com/\nX",
        "javascript:alert(1)",
    ],
)
def test_what_is_no_base_url(value: str) -> None:
    assert "https://api.example.com/v1" in errors(base_url=value)["base_url"][0]


@pytest.mark.parametrize(
    "value", ["https://key@example.com", "https://example.com?key=1", "https://example.com/#a"]
)
def test_base_urls_hold_no_secrets(value: str) -> None:
    assert "Leave out credentials" in errors(base_url=value)["base_url"][0]


@pytest.mark.parametrize(
    ("rate", "says"),
    [("unlimited", "needs no limit here"), ("5000/month", "5000/30d"), ("0/m", "ever leave")],
)
@pytest.mark.parametrize("kind", ["bucket", "window"])
def test_rates_that_nobody_can_keep_to(rate: str, says: str, kind: str) -> None:
    found = limit_errors(rate, kind=kind)
    assert list(found) == ["rate"]
    assert says in found["rate"][0]


def test_bursts_are_for_buckets() -> None:
    assert limit_errors("10/s", kind="bucket", burst=20) == {}
    assert list(limit_errors("10/s", kind="window", burst=20)) == ["burst"]
    assert "366 days" in limit_errors("1/d", kind="bucket", burst=367)["burst"][0]
    assert list(limit_errors("1/s", kind="bucket", burst=0)) == ["burst"]


def test_what_is_no_rate_is_not_saved(vendor: Upstream) -> None:
    assert list(limit_errors("ten/m")) == ["rate"]
    with pytest.raises(ValidationError, match="is not a rate"):
        vendor.limits.create(name="n", rate="ten/m")


def test_fixtures_by_natural_keys(vendor: Upstream, tmp_path: Any) -> None:
    vendor.limits.create(name="n", rate="100/m", kind="bucket", burst=7, per="tenant")
    path = tmp_path / "upstreams.json"
    options = {"use_natural_foreign_keys": True, "use_natural_primary_keys": True}
    call_command("dumpdata", "ratelimits", output=str(path), **options)
    vendor.delete()
    # Twice: rows that are there are found by their natural keys.
    for _ in range(2):
        call_command("loaddata", str(path), stdout=StringIO())
    limit = UpstreamLimit.objects.get()
    assert (limit.upstream.slug, str(limit.rate), limit.burst) == ("vendor", "100/m", 7)
