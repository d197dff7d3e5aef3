"""The page of somebody else's API: what it allows, how calls stand, and how to let them go on."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from freezegun import freeze_time

from ratelimits.admin import upstream_standing
from ratelimits.client import booking, upstream
from ratelimits.client.gate import Gate, credentials_key
from ratelimits.client.quotas import Quota
from ratelimits.effects import drive
from ratelimits.models import Upstream
from tests.admin_site import allow, limit_errors, warnings_of
from tests.servers import RedisServer

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin_site")]

UPSTREAMS = "/admin/ratelimits/upstream/"
KEY = "sk-very-secret"


@pytest.fixture
def vendor(fresh: None) -> Upstream:
    vendor = Upstream.objects.create(slug="vendor", name="Vendor", guard=0)
    vendor.limits.create(name="calls", rate="10/m", kind="bucket")
    return vendor


@pytest.fixture
def gate(vendor: Upstream) -> Gate:
    """Of a credential that was used."""
    return used(KEY)


def used(key: str, customer: str | None = None) -> Gate:
    gate = upstream("vendor", key, customer).gate()
    booking.announce(credentials_key("vendor"), gate.credential)
    return gate


def page(vendor: Upstream, name: str = "change") -> str:
    return f"{UPSTREAMS}{vendor.pk}/{name}/"


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", html))


def text_of(client: Client, vendor: Upstream) -> str:
    """What the page says, above its form."""
    html = client.get(page(vendor)).content.decode()
    return words(html[html.index("ratelimits-desk") : html.index('id="upstream_form"')])


def looked(client: Client, vendor: Upstream, **data: str) -> str:
    html = client.post(page(vendor, "look"), data).content.decode()
    return words(html[html.index("content-main") :])


def lift(client: Client, vendor: Upstream, gate: Gate, **data: str) -> Any:
    return client.post(page(vendor, "lift"), {"digest": gate.credential, **data}, follow=True)


def saved(client: Client, *limits: dict[str, Any], **values: Any) -> Any:
    data = {"slug": "new", "name": "New", "max_wait": "5", "guard": "0.05", **values}
    data |= {"limits-TOTAL_FORMS": len(limits), "limits-INITIAL_FORMS": 0}
    for number, limit in enumerate(limits):
        row = {"name": f"n{number}", "kind": "window", "per": "credential", **limit}
        data |= {f"limits-{number}-{name}": value for name, value in row.items()}
    return client.post(f"{UPSTREAMS}add/", data, follow=True)


def test_one_is_added_with_its_limits(admin_client: Client) -> None:
    response = saved(admin_client, {"rate": "100/m"}, retry_statuses="403, 529")
    assert warnings_of(response) == []
    upstream = Upstream.objects.get()
    assert (upstream.slug, str(upstream.limits.get().rate)) == ("new", "100/m")
    assert "n0: 100 requests per minute" in admin_client.get(UPSTREAMS).content.decode()


def test_a_form_is_told_what_is_wrong(admin_client: Client) -> None:
    response = saved(admin_client, {"rate": "9/month"}, {"rate": "9/m", "burst": "3"})
    errors = limit_errors(response)
    assert "9/30d" in errors[0]["rate"][0]
    assert "Only a bucket has a burst" in errors[1]["burst"][0]


@pytest.mark.parametrize(
    ("limits", "values", "says"),
    [
        ([], {}, "It has no limits"),
        ([{"rate": "9/s", "per": "tenant"}], {}, "All its limits are shares of customers"),
        ([{"rate": "9/s", "kind": "bucket", "burst": "30"}], {}, "“n0” is a bucket: if they"),
        ([{"rate": "9/s", "kind": "bucket", "burst": "30"}], {}, "up to 39 units"),
        ([{"rate": "9/s"}], {"guard": "0"}, "Without a guard"),
        ([{"rate": "9/s"}], {"retry_statuses": "529, 504, 403, 503"}, "With 503, 504 taken for"),
        ([{"rate": "9/s"}], {"max_wait": "61"}, "Calls may wait for 61 s."),
        ([{"rate": "9/s"}], {"max_wait": "1e15"}, "Calls may wait for 366 days."),
        (
            [{"rate": "9/s"}, {"rate": "600/m", "per": "tenant"}],
            {},
            "“n1” lets one customer have all of “n0”",
        ),
    ],
)
def test_traps(admin_client: Client, limits: Any, values: Any, says: str) -> None:
    (warning,) = warnings_of(saved(admin_client, *limits, **values))
    assert says in warning


def test_no_trap(admin_client: Client) -> None:
    shares = [{"rate": "10/s"}, {"rate": "599/m", "per": "tenant"}]
    assert warnings_of(saved(admin_client, *shares, max_wait="60")) == []


def test_the_list_is_read_at_once(admin_client: Client, django_assert_max_num_queries: Any) -> None:
    for number in range(30):
        upstream = Upstream.objects.create(slug=f"u{number}")
        upstream.limits.create(name="n", rate="1/s")
    with django_assert_max_num_queries(8):
        admin_client.get(UPSTREAMS)


def test_nobody_called_yet(admin_client: Client, vendor: Upstream) -> None:
    assert "Nothing called it within the last week." in text_of(admin_client, vendor)


@freeze_time("2026-03-04 12:00:00")
def test_how_full_the_limits_are(admin_client: Client, vendor: Upstream, gate: Gate) -> None:
    drive(gate.enter(4))
    text = text_of(admin_client, vendor)
    assert f"Credential {gate.credential[:8]}" in text
    assert gate.credential not in text
    assert "The next call leaves at once." in text
    assert (
        "calls 10 requests per minute each credential 6 of 10 left full again in 24 s now" in text
    )
    assert "Calls in this hour and the one before: 1. Refused by the API" in text
    drive(gate.enter(6))
    text = text_of(admin_client, vendor)
    assert "“calls” is used up: the next call leaves in 6 s." in text
    assert "0 of 10 left full again in 60 s in 6 s" in text
    html = admin_client.get(page(vendor)).content.decode()
    assert 'aria-label="calls: 0 of 10 left"' in html


@freeze_time("2026-03-04 12:00:00")
def test_a_block_and_whose_answer_it_was(
    admin_client: Client, vendor: Upstream, gate: Gate
) -> None:
    seen = "retry-after: 100\nx-ratelimit-limit: <10>"
    drive(gate.block(100, "429, Retry-After: 100", seen))
    html = admin_client.get(page(vendor)).content.decode()
    assert "<code>x-ratelimit-limit: &lt;10&gt;</code>" in html
    text = words(html)
    assert "No call leaves for 100 s, because of an answer: 429, Retry-After: 100." in text
    assert "Fields of an answer 0 s ago: retry-after: 100 x-ratelimit-limit:" in text
    assert "look too high" not in text


@freeze_time("2026-03-04 12:00:00")
def test_limits_that_are_too_high(admin_client: Client, vendor: Upstream, gate: Gate) -> None:
    for _ in range(3):
        drive(gate.block(1, "429"))
    text = text_of(admin_client, vendor)
    assert "The configured limits look too high" in text
    assert "let them leave: 3." in text


@freeze_time("2026-03-04 12:00:00")
def test_limits_of_which_the_answers_name_less(
    admin_client: Client, vendor: Upstream, gate: Gate
) -> None:
    passed = drive(gate.enter())
    seen = 'ratelimit-policy: "default";q=5;w=60\nratelimit: "default";r=4;t=9'
    vendor.limits.create(name="share", rate="9/m", per="tenant")
    gate.observe(passed, [Quota("default", 5, 4, 9, 60)], seen)
    drive(gate.enter())
    text = text_of(admin_client, vendor)
    assert "“calls” is 10 requests per minute here, but answers of the API name less." in text
    assert "“share” is" not in text
    drive(gate.block(1, "429", 'ratelimit-policy: "a";q=5;w=60, "b";q=10;w=60', refused=False))
    assert "“calls” is" not in text_of(admin_client, vendor)


@pytest.mark.django_db(transaction=True)
def test_what_was_edited_elsewhere(admin_client: Client, vendor: Upstream, gate: Gate) -> None:
    """The page shows the limits as it edits them, even if this process calls nobody."""
    drive(gate.look())
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ratelimits_upstreamlimit SET name = 'renamed'")
    assert "renamed 10 requests per minute" in text_of(admin_client, vendor)


def test_not_all_credentials_are_shown(
    admin_client: Client, vendor: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream_standing, "SHOWN", 2)
    for number in range(5):
        used(f"key-{number}")
    text = text_of(admin_client, vendor)
    assert text.count("Credential ") == 2
    assert "3 more were used before these" in text
    # Nor are all looked at that a slow store would take long for.
    monkeypatch.setattr(upstream_standing, "LONGEST", 0.0)
    assert "4 more were used before these" in text_of(admin_client, vendor)


@freeze_time("2026-03-04 12:00:00")
def test_a_pasted_credential(admin_client: Client, vendor: Upstream) -> None:
    vendor.limits.create(name="share", rate="5/m", kind="bucket", per="tenant")
    drive(used(KEY, "acme").enter(2))
    text = looked(admin_client, vendor, credential=KEY)
    assert "calls 10 requests per minute each credential 8 of 10 left" in text
    assert "share 5" not in text
    text = looked(admin_client, vendor, credential=KEY, customer="acme")
    assert "in the name of acme" in text
    assert "share 5 requests per minute each customer in whose name we call 3 of 5 left" in text
    text = looked(admin_client, vendor, credential="another")
    assert "calls 10 requests per minute each credential 10 of 10 left" in text


def test_a_credential_is_shown_nowhere(admin_client: Client, vendor: Upstream) -> None:
    html = admin_client.post(page(vendor, "look"), {"credential": KEY}).content.decode()
    assert KEY not in html
    assert "Credential " in html
    html = admin_client.post(
        page(vendor, "look"), {"credential": KEY, "customer": "x" * 300}
    ).content.decode()
    assert KEY not in html
    assert "Please correct the errors below." in html


def test_a_credential_may_have_spaces(admin_client: Client, vendor: Upstream) -> None:
    gate = used(f" {KEY} ")
    assert gate.credential[:8] in looked(admin_client, vendor, credential=f" {KEY} ")


@freeze_time("2026-03-04 12:00:00")
def test_calls_are_let_go_on_after_a_question(
    admin_client: Client, vendor: Upstream, gate: Gate
) -> None:
    assert "Let them go on" not in text_of(admin_client, vendor)
    drive(gate.block(3600, "429, Retry-After: 3600"))
    assert "Let them go on" in text_of(admin_client, vendor)
    asked = lift(admin_client, vendor, gate).content.decode()
    assert f"with the credential {gate.credential[:8]} leave again at once" in words(asked)
    assert drive(gate.look()).blocked_for == 3600
    response = lift(admin_client, vendor, gate, post="yes")
    assert "Calls to “Vendor” with the credential" in response.content.decode()
    assert drive(gate.look()).blocked_for == 0
    assert "The next call leaves at once." in text_of(admin_client, vendor)
    history = admin_client.get(page(vendor, "history")).content.decode()
    assert f"Let calls with the credential {gate.credential[:8]} go on." in history


def test_a_digest_that_is_none(admin_client: Client, vendor: Upstream) -> None:
    response = admin_client.post(
        page(vendor, "lift"), {"digest": "<x>", "post": "yes"}, follow=True
    )
    assert "Open the page again." in response.content.decode()
    assert not LogEntry.objects.exists()


def test_who_may_what(staff: Client, vendor: Upstream, gate: Gate) -> None:
    drive(gate.block(3600, "429"))
    pages = [page(vendor, "look"), page(vendor, "lift")]
    assert [staff.post(url).status_code for url in pages] == [403, 403]
    allow("view_upstream")
    assert "Let them go on" not in staff.get(page(vendor)).content.decode()
    assert [staff.post(url).status_code for url in pages] == [200, 403]
    assert gate.credential[:8] in looked(staff, vendor, credential=KEY)
    allow("change_upstream")
    assert "Let them go on" in staff.get(page(vendor)).content.decode()
    assert lift(staff, vendor, gate).status_code == 200


def test_nothing_is_changed_by_get_or_without_a_token(vendor: Upstream, gate: Gate) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("operator"))
    for name in ("look", "lift"):
        assert client.get(page(vendor, name)).status_code == 405
        assert client.post(page(vendor, name), {"digest": gate.credential}).status_code == 403


def test_a_form_with_errors_shows_the_stored_ones_state(
    admin_client: Client, vendor: Upstream, gate: Gate
) -> None:
    response = admin_client.post(page(vendor), {"slug": "renamed", "max_wait": "-1"})
    assert gate.credential[:8] in response.content.decode()


@pytest.mark.django_db(transaction=True)
def test_the_store_away(
    admin_client: Client, on_redis: RedisServer, vendor: Upstream, gate: Gate, settings: Any
) -> None:
    drive(gate.block(3600, "429"))
    settings.RATELIMITS = {"STORE_TIMEOUT": 0.2}
    on_redis.stop()
    assert "Unavailable: the store" in text_of(admin_client, vendor)
    assert "Unavailable: the store" in looked(admin_client, vendor, credential=KEY)
    response = lift(admin_client, vendor, gate, post="yes")
    assert "Nothing was changed: the store that holds the counts" in response.content.decode()
    assert not LogEntry.objects.exists()
