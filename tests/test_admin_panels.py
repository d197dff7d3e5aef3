"""The dashboard's panels of the mode, of limits in shadow, and of how a request is seen."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from ratelimits import usage
from ratelimits.limiter import take
from ratelimits.models import ModeSwitch, Plan, ServiceLimit
from ratelimits.switching import mode_now
from tests.admin_site import PLANS, SERVICE, allow

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.admin_site"),
    pytest.mark.usefixtures("fresh"),
]

DASHBOARD = "/admin/ratelimits/tenant/dashboard/"
ADD = "/admin/ratelimits/modeswitch/add/"


@pytest.fixture
def staff(staff: Client) -> Client:
    allow("view_tenant")
    return staff


def text(client: Client, **headers: Any) -> str:
    response = client.get(DASHBOARD, **headers)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_the_mode_is_told_and_switched_by_who_may(staff: Client) -> None:
    assert "The mode of all limits is “enforce”." in text(staff)
    assert ADD not in text(staff)
    allow("switch_mode")
    assert f'action="{ADD}"' in text(staff)
    data = {"mode": "off", "seconds": "900", "reason": "A mad client.", "_dashboard": "1"}
    response = staff.post(ADD, data)
    assert (response.status_code, response["Location"]) == (302, DASHBOARD)
    assert mode_now().mode == "off"
    assert "The mode of all limits is “off” until" in text(staff)
    assert "Switched by staff. A mad client." in text(staff)


def test_a_wrong_switch_is_told_beside_its_field(staff: Client) -> None:
    allow("switch_mode")
    response = staff.post(ADD, {"mode": "off", "seconds": "900", "_dashboard": "1"})
    assert response.status_code == 200
    assert "reason" in response.context["adminform"].form.errors
    assert not ModeSwitch.objects.exists()


def test_limits_in_shadow(staff: Client) -> None:
    plan = Plan.objects.create(slug="pro", name="Pro", is_default=True)
    new = plan.limits.create(name="new", rate="1/h", mode="shadow")
    service = ServiceLimit.objects.create(name="all", rate="1/h", mode="shadow")
    assert all(take("acme").allowed for _ in range(4))
    usage.flush()
    assert "In shadow" not in text(staff)
    allow("view_plan", "view_servicelimit")
    html = text(staff)
    assert html.count("It would have refused 3 requests in the last day") == 2
    assert f'<a href="{PLANS}{plan.pk}/change/">Pro, new</a>' in html
    assert f'<a href="{SERVICE}{service.pk}/change/">all</a>' in html
    assert "Enforce from now on" not in html
    allow("change_plan", "change_planlimit")
    assert text(staff).count("Enforce from now on") == 1
    staff.post(f"{PLANS}{plan.pk}/enforce/", {"limit": new.pk})
    new.refresh_from_db()
    assert new.mode == "enforce"


def test_many_plans_need_no_more_queries(
    admin_client: Client, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        plan = Plan.objects.create(slug=f"p{number}", name=f"P{number}")
        plan.limits.create(name=f"n{number}", rate="1/s", mode="shadow")
    text(admin_client)
    with django_assert_max_num_queries(20):
        html = text(admin_client)
    assert html.count("Enforce from now on") == 20


def test_how_we_see_you(staff: Client, settings: Any) -> None:
    settings.RATELIMITS = {"TRUSTED_PROXIES": 1}
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    plan.limits.create(name="api", rate="10/m")
    pk = User.objects.get(username="staff").pk
    html = text(staff, HTTP_X_FORWARDED_FOR="<script>, 192.0.2.7", REMOTE_ADDR="10.0.0.2")
    assert "&lt;script&gt;</th><td>claimed, not believed" in html
    assert "192.0.2.7</th><td><strong>the caller" in html
    assert "10.0.0.2</th><td>a proxy that is trusted" in html
    assert "Counted by the address: <strong>192.0.2.7" in html
    assert f"Tenant: <strong>user:{pk}" in html
    assert "Exempt: no" in html
    assert '"ratelimits-standing">Limits in force' in html
    assert "10 requests per minute" in html


def test_a_proxy_that_nobody_set_up_is_told(staff: Client) -> None:
    html = text(staff, HTTP_X_FORWARDED_FOR="192.0.2.7", REMOTE_ADDR="10.0.0.2")
    assert "all clients behind that proxy count as one" in html


def test_credentials_are_not_shown(staff: Client, settings: Any) -> None:
    settings.RATELIMITS = {"TENANT": ["tests.test_seeing.broken"]}
    html = text(staff, HTTP_AUTHORIZATION="Bearer t0psecret", HTTP_X_API_KEY="t0psecret")
    assert "t0psecret" not in html and "a secret" not in html
    assert "A callable of the settings fails: TENANT: RuntimeError." in html
    assert staff.cookies["sessionid"].value not in html
