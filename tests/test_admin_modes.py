"""To switch the mode from the admin."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from ratelimits.models import ModeSwitch
from ratelimits.switching import mode_now
from tests.admin_site import allow, warnings_of
from tests.servers import RedisServer

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.admin_site"),
    pytest.mark.usefixtures("fresh"),
]

PAGE = "/admin/ratelimits/modeswitch/"
ADD = PAGE + "add/"
DATA = {"mode": "shadow", "seconds": "1800", "reason": "A client went mad."}


def test_a_switch_by_who_may(staff: Client) -> None:
    allow("switch_mode")
    assert "enforce" in staff.get(ADD).content.decode()
    response = staff.post(ADD, DATA, follow=True)
    assert response.status_code == 200
    row = ModeSwitch.objects.get()
    assert (row.mode, row.by, row.reason) == ("shadow", "staff", DATA["reason"])
    assert row.until - row.since < timedelta(seconds=1801)
    assert mode_now().mode == "shadow"
    assert LogEntry.objects.get().is_addition()


@pytest.mark.parametrize("names", [(), ("view_modeswitch",), ("change_plan", "add_plan")])
def test_nobody_else_switches(staff: Client, names: tuple[str, ...]) -> None:
    allow(*names)
    assert staff.post(ADD, DATA).status_code == 403
    assert not ModeSwitch.objects.exists()


def test_history_can_be_looked_at_and_not_changed(staff: Client) -> None:
    row = ModeSwitch.objects.switch("off", 60, by="<b>", reason="<script>")
    assert staff.get(PAGE).status_code == 403
    allow("view_modeswitch")
    for page in (PAGE, f"{PAGE}?q=x", f"{PAGE}{row.pk}/change/", f"{PAGE}{row.pk}/history/"):
        html = staff.get(page).content.decode()
        assert "<script>" not in html.split("<body")[1].replace("<script src", "")
    allow("switch_mode")
    assert staff.post(f"{PAGE}{row.pk}/change/", DATA).status_code == 403
    assert staff.post(f"{PAGE}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert ModeSwitch.objects.get().mode == "off"


@pytest.mark.parametrize(
    "changes",
    [{"seconds": "86401"}, {"seconds": ""}, {"mode": "never"}, {"reason": ""}, {"seconds": "0"}],
)
def test_no_switch_without_an_end_or_a_reason(admin_client: Client, changes: Any) -> None:
    response = admin_client.post(ADD, {**DATA, **changes})
    assert response.status_code == 200
    assert response.context["errors"]
    assert not ModeSwitch.objects.exists()


def test_back_to_the_settings(admin_client: Client) -> None:
    ModeSwitch.objects.switch("off", 3600)
    assert "“off” until" in admin_client.get(ADD).content.decode()
    admin_client.post(ADD, {**DATA, "mode": "settings"})
    assert mode_now().row is None


@pytest.mark.django_db(transaction=True)
def test_who_hears_of_it_late_is_said_only_if_it_is_so(
    admin_client: Client, on_redis: RedisServer, settings: Any
) -> None:
    settings.RATELIMITS = {**settings.RATELIMITS, "STORE_TIMEOUT": 2}
    assert warnings_of(admin_client.post(ADD, DATA, follow=True)) == []
    on_redis.kill()
    told = warnings_of(admin_client.post(ADD, DATA, follow=True))
    assert len(told) == 1
    assert told[0].startswith("The store did not take the news.")
