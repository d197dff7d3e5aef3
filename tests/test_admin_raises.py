from __future__ import annotations

from datetime import datetime, timedelta
from datetime import timezone as zones
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from freezegun import freeze_time

from ratelimits.admin import raises
from ratelimits.admin.raises import ends
from ratelimits.limiter import peek
from ratelimits.models import Plan, Tenant, TenantLimit
from ratelimits.raising import raised
from ratelimits.standing import standing_of
from tests.admin_site import TENANTS
from tests.doors import make_plan

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin_site")]
WEDNESDAY = "2026-03-04 12:00:00"


@pytest.fixture
def tenant(settings: Any) -> Tenant:
    settings.TIME_ZONE = "UTC"
    plan = make_plan("api 100/m", slug="pro")
    plan.limits.update(burst=20)
    return Tenant.objects.create(key="acme", plan=plan)


def post(client: Client, tenant: Tenant, name: str = "raise", **data: Any) -> Any:
    # On each day there is this end; on a Thursday and a Friday, "friday" is called otherwise.
    fields = {"limit": "api", "rate": "1000/m", "until": "hour", **data}
    posted = {f"raise-{field}": value for field, value in fields.items()}
    return client.post(f"{TENANTS}{tenant.pk}/{name}/", posted, follow=True)


def end(client: Client, tenant: Tenant) -> Any:
    limit = TenantLimit.objects.get().pk
    return client.post(f"{TENANTS}{tenant.pk}/end/", {"limit": limit}, follow=True)


def in_force(key: str = "acme") -> dict[str, str]:
    return {found.limit.name: str(found.limit.rate) for found in standing_of(key).limits}


def test_until_friday(admin_client: Client, tenant: Tenant) -> None:
    with freeze_time(WEDNESDAY) as time:
        admin_client.force_login(User.objects.get(username="admin"))
        response = post(admin_client, tenant, until="friday", reason="big launch")
        assert "Raised “api” to 1000 requests per minute, burst 200 (until the end of Friday" in (
            response.content.decode()
        )
        assert "expires in 3 days" in response.content.decode()
        assert in_force() == {"api": "1000/m"}
        row = tenant.limits.get()
        assert row.expires_at == datetime(2026, 3, 7, tzinfo=zones.utc)
        assert (row.reason, row.burst, row.replaces) == ("big launch", 200, "pro/api 100/m")
        entry = LogEntry.objects.get()
        assert entry.object_id == str(tenant.pk)
        assert "1000 requests per minute" in entry.change_message
        assert "big launch" in entry.change_message
        time.move_to("2026-03-06 23:59:59")
        assert in_force() == {"api": "1000/m"}
        time.move_to("2026-03-07 00:00:00")
        assert in_force() == {"api": "100/m"}
        assert peek("acme").outcomes[0].limit.burst == 20


def test_an_own_limit_that_lasts_is_back_afterwards(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="api", rate="300/m", burst=50, reason="contract")
    with freeze_time(timezone.now()) as time:
        post(admin_client, tenant, reason="launch")
        assert in_force() == {"api": "1000/m"}
        # Raised once more, it still knows what it was.
        post(admin_client, tenant, rate="2000/m")
        assert in_force() == {"api": "2000/m"}
        time.tick(3601)
        assert in_force() == {"api": "300/m"}
        page = admin_client.get(f"{TENANTS}{tenant.pk}/change/").content.decode()
        assert "it is as before" in page
        assert end(admin_client, tenant).status_code == 200
    row = tenant.limits.get()
    assert (str(row.rate), row.burst, row.reason, row.expires_at) == ("300/m", 50, "contract", None)
    assert (row.rate_after, row.burst_after, row.reason_after) == ("", None, "")


def test_a_raise_is_raised_again_after_its_end(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="api", rate="300/m")
    with freeze_time(timezone.now()) as time:
        post(admin_client, tenant)
        time.tick(3601)
        post(admin_client, tenant, rate="400/m")
        assert in_force() == {"api": "400/m"}
        time.tick(3601)
        assert in_force() == {"api": "300/m"}


def test_one_that_is_over_begins_again_from_the_plan(admin_client: Client, tenant: Tenant) -> None:
    over = timezone.now() - timedelta(days=1)
    tenant.limits.create(name="api", rate="9/m", scope="search", mode="shadow", expires_at=over)
    post(admin_client, tenant)
    row = tenant.limits.get()
    assert (str(row.rate), row.scope, row.mode) == ("1000/m", "", "enforce")


def test_exactly_until(admin_client: Client, tenant: Tenant) -> None:
    post(admin_client, tenant, at="2099-01-02T03:04", rate="unlimited")
    row = tenant.limits.get()
    assert row.expires_at == datetime(2099, 1, 2, 3, 4, tzinfo=zones.utc)
    assert peek("acme").outcomes == ()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"rate": "ten/m"}, "is not a rate"),
        ({"rate": ""}, "This field is required"),
        ({"rate": "99/m"}, "That is less than now (100 requests per minute)."),
        ({"rate": "1000000/month"}, "Only a fixed window can follow calendar months"),
        ({"at": "2020-01-01T00:00"}, "This time is over"),
        ({"until": "whenever"}, "Select a valid choice"),
        ({"limit": "other"}, "Select a valid choice"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_saved(
    admin_client: Client, tenant: Tenant, wrong: dict[str, str], told: str
) -> None:
    html = post(admin_client, tenant, **wrong).content.decode()
    assert told in html
    assert "Please correct the errors below." in html
    assert not TenantLimit.objects.exists()


def test_a_limit_that_is_gone_meanwhile(
    admin_client: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*args: Any) -> None:
        raise ValueError

    monkeypatch.setattr(raises, "raised", gone)
    assert "does not have this limit any more" in post(admin_client, tenant).content.decode()


def test_a_raise_is_ended_before_its_time(admin_client: Client, tenant: Tenant) -> None:
    post(admin_client, tenant)
    html = end(admin_client, tenant).content.decode()
    assert "Ended “api” (1000 requests per minute, burst 200) before its time." in html
    assert in_force() == {"api": "100/m"}
    assert not TenantLimit.objects.exists()
    assert LogEntry.objects.count() == 2


def test_one_that_is_over_is_shown_and_removed(admin_client: Client, tenant: Tenant) -> None:
    with freeze_time(timezone.now()):
        over = timezone.now() - timedelta(days=1, hours=20)
        tenant.limits.create(name="api", rate="900/m", expires_at=over)
        html = admin_client.get(f"{TENANTS}{tenant.pk}/change/").content.decode()
    assert "expired 44 h ago" in html and "it counts no more" in html
    assert "which had ended" in end(admin_client, tenant).content.decode()
    assert not TenantLimit.objects.exists()


def test_only_what_has_an_end_is_ended(admin_client: Client, tenant: Tenant) -> None:
    tenant.limits.create(name="api", rate="900/m")
    assert "nothing to end any more" in end(admin_client, tenant).content.decode()
    assert admin_client.get(f"{TENANTS}{tenant.pk}/end/").status_code == 405
    other = Tenant.objects.create(key="other")
    TenantLimit.objects.update(expires_at=timezone.now())
    assert "nothing to end any more" in end(admin_client, other).content.decode()
    for limit in ("x", "", "9" * 5000):
        posted = {"limit": limit}
        response = admin_client.post(f"{TENANTS}{tenant.pk}/end/", posted, follow=True)
        assert "nothing to end any more" in response.content.decode()
    assert TenantLimit.objects.exists()
    assert not LogEntry.objects.exists()


def whoever_knows_is_away(key: str) -> str:
    raise ConnectionError("no billing")


@pytest.mark.parametrize("method", ["get", "post"])
def test_limits_that_nobody_can_tell(
    admin_client: Client, tenant: Tenant, settings: Any, method: str
) -> None:
    settings.RATELIMITS = {"PLAN": f"{__name__}.whoever_knows_is_away"}
    response = getattr(admin_client, method)(f"{TENANTS}{tenant.pk}/raise/", follow=True)
    assert response.redirect_chain == [(f"{TENANTS}{tenant.pk}/change/", 302)]
    html = response.content.decode()
    assert "None can be raised now: the limits are unavailable." in html
    assert "The limits are unavailable: what the setting PLAN names fails." in html
    assert not TenantLimit.objects.exists()


def test_once_over_it_has_its_old_reason(admin_client: Client, tenant: Tenant) -> None:
    row = tenant.limits.create(name="api", rate="200/m", reason="the contract")
    response = post(admin_client, tenant, reason="a launch")
    assert "reason: a launch" in response.content.decode()
    TenantLimit.objects.filter(pk=row.pk).update(expires_at=timezone.now())
    html = admin_client.get(f"{TENANTS}{tenant.pk}/change/").content.decode()
    assert "it is as before" in html
    assert "reason: the contract" in html
    assert "reason: a launch" not in html


def test_two_clicks_end_it_once(admin_client: Client, tenant: Tenant) -> None:
    post(admin_client, tenant)
    posted = {"limit": TenantLimit.objects.get().pk}
    told = [
        admin_client.post(f"{TENANTS}{tenant.pk}/end/", posted, follow=True).content.decode()
        for _ in range(2)
    ]
    assert "before its time" in told[0]
    assert "nothing to end any more" in told[1]


def test_two_who_raise_it_at_once(
    admin_client: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find no row; the slower one raises what the faster one made."""
    others = iter([True, False])

    def slow(*args: Any) -> Any:
        row = raised(*args)
        if next(others):
            tenant.limits.create(name="api", rate="500/m", expires_at=args[3])
        return row

    monkeypatch.setattr(raises, "raised", slow)
    assert "Raised “api” to 1000" in post(admin_client, tenant).content.decode()
    assert in_force() == {"api": "1000/m"}
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize("at", ["9999-12-31T23:59", "9999-12-31T23:59Z"])
def test_never_is_no_end(
    admin_client: Client, tenant: Tenant, settings: Any, zone: str, at: str
) -> None:
    settings.TIME_ZONE = zone
    response = post(admin_client, tenant, at=at)
    assert response.context["form"].errors["at"] == ["That is too far away."]
    assert not TenantLimit.objects.exists()


def test_permissions(client: Client, tenant: Tenant) -> None:
    user = User.objects.create_user("staff", is_staff=True)
    client.force_login(user)
    for name in ("view_tenant", "change_tenant", "add_tenantlimit", "change_tenantlimit"):
        assert (
            "ratelimits-raise" not in client.get(f"{TENANTS}{tenant.pk}/change/").content.decode()
        )
        assert post(client, tenant).status_code == 403
        user.user_permissions.add(Permission.objects.get(codename=name))
    assert "ratelimits-raise" in client.get(f"{TENANTS}{tenant.pk}/change/").content.decode()
    assert post(client, tenant).status_code == 200
    assert TenantLimit.objects.count() == 1
    assert end(client, tenant).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="delete_tenantlimit"))
    assert end(client, tenant).status_code == 200
    assert not TenantLimit.objects.exists()


@pytest.mark.parametrize(
    ("day", "names"),
    [
        (2, "hour today tomorrow friday week month"),
        (5, "hour today tomorrow week month"),
        (6, "hour today tomorrow week month"),
        (7, "hour today tomorrow friday week month"),
    ],
)
def test_usual_ends(day: int, names: str) -> None:
    now = datetime(2026, 3, day, 9, tzinfo=zones.utc)
    found = ends(now)
    assert " ".join(found) == names
    assert found["today"][1] == datetime(2026, 3, day + 1, tzinfo=zones.utc)
    if "friday" in found:
        assert "Friday" in found["friday"][0]
        assert found["friday"][1].weekday() == 5
        assert timedelta(0) < found["friday"][1] - now < timedelta(days=7)


def test_ends_without_time_zones() -> None:
    assert ends(datetime(2026, 3, 4, 9))["today"][1] == datetime(2026, 3, 5)


def test_plans_are_left_alone(admin_client: Client, tenant: Tenant) -> None:
    post(admin_client, tenant)
    assert str(Plan.objects.get().limits.get().rate) == "100/m"
    assert in_force("other") == {"api": "100/m"}
