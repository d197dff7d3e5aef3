"""Somebody in support has a customer on the phone who is refused."""

from __future__ import annotations

from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from django.contrib.admin.models import LogEntry
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from demo_project.tenants import KEYS
from ratelimits.models import Tenant
from tests.browser.doing import submit
from tests.doors import make_plan

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def acme(settings: Any) -> Tenant:
    settings.RATELIMITS = {"TENANT": "demo_project.tenants.by_api_key"}
    return Tenant.objects.create(key="acme", name="Acme Inc.", plan=make_plan("api 2/h"))


def call(site: str, key: str) -> int:
    asked = Request(f"{site}/api/orders", headers={"X-API-Key": key})
    try:
        with urlopen(asked) as answer:
            return int(answer.status)
    except HTTPError as refused:
        with refused:
            return refused.code


def text(browser: webdriver.Chrome, css: str) -> str:
    return browser.find_element(By.CSS_SELECTOR, css).text


def console(browser: webdriver.Chrome) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


def follow(browser: webdriver.Chrome, link: str) -> None:
    submit(browser, f"a[href$='{link}']")


def test_why_is_acme_refused_and_let_them_in(
    site: str,
    operator: webdriver.Chrome,
    acme: Tenant,
) -> None:
    key = KEYS["acme"]
    assert [call(site, key) for _ in range(3)] == [200, 200, 429]
    operator.get(f"{site}/admin/ratelimits/tenant/")
    operator.get_log("browser")
    follow(operator, f"/tenant/{acme.pk}/change/")
    assert "Refused now by “api” (2 requests per hour)" in text(operator, ".ratelimits-verdict")
    meter = operator.find_element(By.TAG_NAME, "meter")
    assert meter.get_attribute("aria-label") == "api: 0 of 2 left"
    assert Select(operator.find_element(By.NAME, "raise-limit")).first_selected_option.text == (
        "api: 2 requests per hour"
    )
    operator.find_element(By.NAME, "raise-rate").send_keys("100/h")
    until = Select(operator.find_element(By.NAME, "raise-until"))
    until.select_by_value("week")
    operator.find_element(By.NAME, "raise-reason").send_keys("a launch")
    submit(operator, ".ratelimits-form [type=submit]")
    assert "Raised “api” to 100 requests per hour (until" in text(operator, ".messagelist")
    assert "Nothing is refused now." in text(operator, ".ratelimits-verdict")
    assert "expires in 8 days" in text(operator, ".ratelimits-standing")
    assert call(site, key) == 200
    assert console(operator) == []


def test_reset_after_a_question(
    site: str,
    operator: webdriver.Chrome,
    acme: Tenant,
) -> None:
    key = KEYS["acme"]
    assert [call(site, key) for _ in range(3)] == [200, 200, 429]
    operator.get(f"{site}/admin/ratelimits/tenant/{acme.pk}/change/")
    operator.get_log("browser")
    follow(operator, "/reset/")
    assert "Acme Inc. (acme)" in text(operator, "#content-main")
    submit(operator, "#content-main [type=submit]")
    assert "is forgotten" in text(operator, ".messagelist")
    assert call(site, key) == 200
    assert LogEntry.objects.get().get_change_message() == "Reset what it had used."
    assert console(operator) == []


def test_a_caller_is_found_by_its_credential(
    site: str,
    operator: webdriver.Chrome,
) -> None:
    secret = KEYS["bakery"]
    assert call(site, secret) == 200
    operator.get(f"{site}/admin/ratelimits/tenant/")
    operator.get_log("browser")
    follow(operator, "/tenant/find/")
    operator.find_element(By.NAME, "credential").send_keys(secret)
    submit(operator, ".ratelimits-form [type=submit]")
    assert "of the tenant “bakery”, by the header X-API-Key" in text(operator, "#content-main")
    assert secret not in operator.page_source + operator.current_url
    submit(operator, "[action$='/find/add/'] [type=submit]")
    assert "“bakery” has a row now." in text(operator, ".messagelist")
    assert Tenant.objects.filter(key="bakery").exists()
    assert console(operator) == []
