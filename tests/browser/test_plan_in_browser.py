"""Somebody in sales edits a plan, and somebody in support explains what it did."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from demo_project.tenants import KEYS
from ratelimits import usage
from ratelimits.models import Plan, PlanLimit, Tenant
from tests.browser.doing import submit
from tests.doors import make_plan

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def free(settings: Any) -> Plan:
    settings.RATELIMITS = {"TENANT": "demo_project.tenants.by_api_key"}
    plan = make_plan("api 3/h")
    Tenant.objects.create(key="acme", name="Acme Inc.", plan=plan)
    return plan


def call(site: str) -> dict[str, Any]:
    """What acme is answered; nothing if it may."""
    asked = Request(f"{site}/api/orders", headers={"X-API-Key": KEYS["acme"]})
    try:
        with urlopen(asked):
            return {}
    except HTTPError as refused:
        with refused:
            return dict(json.load(refused))


def text(browser: webdriver.Chrome, css: str) -> str:
    return browser.find_element(By.CSS_SELECTOR, css).text


def console(browser: webdriver.Chrome) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


def rewrite(browser: webdriver.Chrome, name: str, value: str) -> None:
    field = browser.find_element(By.NAME, name)
    field.clear()
    field.send_keys(value)


def test_an_edit_is_previewed_and_then_saved(
    site: str, operator: webdriver.Chrome, free: Plan
) -> None:
    assert [call(site) for _ in range(3)] == [{}] * 3
    usage.flush()
    operator.get(f"{site}/admin/ratelimits/plan/{free.pk}/change/")
    operator.get_log("browser")
    assert "1 tenant is on this plan." in text(operator, "#content")
    rewrite(operator, "limits-0-rate", "2/h")
    submit(operator, "[name=_preview]")
    found = text(operator, ".ratelimits-preview")
    assert "“api”: 3 requests per hour becomes 2 requests per hour" in found
    assert "1 of them used more than that" in found
    assert "Acme Inc. (acme)" in found
    assert str(PlanLimit.objects.get().rate) == "3/h"
    submit(operator, "[name=_save]")
    assert str(PlanLimit.objects.get().rate) == "2/h"
    assert console(operator) == []


def test_all_tenants_of_a_plan_move_before_it_goes(
    site: str, operator: webdriver.Chrome, free: Plan
) -> None:
    pro = Plan.objects.create(slug="pro", name="Pro")
    operator.get(f"{site}/admin/ratelimits/plan/{free.pk}/delete/")
    operator.get_log("browser")
    assert "is in use, so it can't be deleted" in text(operator, "#content")
    assert "Acme Inc. (acme)" in text(operator, "#deleted-objects")
    submit(operator, f"a[href$='/plan/{free.pk}/move/']")
    Select(operator.find_element(By.NAME, "plan")).select_by_visible_text("Pro")
    submit(operator, "#content-main [type=submit]")
    assert "1 tenant moved to the plan “Pro”." in text(operator, ".messagelist")
    assert Tenant.objects.get().plan == pro
    operator.get(f"{site}/admin/ratelimits/plan/{free.pk}/delete/")
    submit(operator, "#content [type=submit]")
    assert Plan.objects.get() == pro
    assert console(operator) == []


def test_selected_tenants_move(site: str, operator: webdriver.Chrome) -> None:
    pro = Plan.objects.create(slug="pro", name="Pro")
    operator.get(f"{site}/admin/ratelimits/tenant/")
    operator.get_log("browser")
    operator.find_element(By.NAME, "_selected_action").click()
    Select(operator.find_element(By.NAME, "action")).select_by_value("move_selected")
    submit(operator, "[name=index]")
    assert "Acme Inc. (acme)" in text(operator, "#content-main")
    Select(operator.find_element(By.NAME, "plan")).select_by_visible_text("Pro")
    submit(operator, "#content-main [type=submit]")
    assert "1 tenant moved to the plan “Pro”." in text(operator, ".messagelist")
    assert Tenant.objects.get().plan == pro
    assert console(operator) == []


def test_a_refusal_is_explained(site: str, operator: webdriver.Chrome) -> None:
    """From the dashboard, with the whole answer as the customer sent it."""
    for _ in range(3):
        call(site)
    answer = json.dumps(call(site), indent=2)
    operator.get(f"{site}/admin/ratelimits/tenant/dashboard/")
    operator.get_log("browser")
    operator.find_element(By.NAME, "receipt").send_keys(answer)
    submit(operator, "[action$='/receipt/'] [type=submit]")
    story = text(operator, ".ratelimits-verdict")
    assert "“Acme Inc. (acme)” was refused on" in story
    assert "The limit “api” (3 requests per hour) had 0 of 3 left" in story
    assert "Limits in force" in text(operator, "#content-main")
    operator.find_element(By.NAME, "receipt").clear()
    operator.find_element(By.NAME, "receipt").send_keys(answer.replace("?=", "?=x"))
    submit(operator, "[action$='/receipt/'] [type=submit]")
    assert "This receipt is not ours" in text(operator, ".errorlist")
    assert console(operator) == []
