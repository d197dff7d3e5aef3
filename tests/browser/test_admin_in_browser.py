"""What an operator does with the mouse, and what callers then get."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from ratelimits.models import Plan, PlanLimit, Tenant
from tests.browser.doing import submit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def free() -> Plan:
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    PlanLimit.objects.create(plan=plan, name="api", rate="10/m")
    return plan


def retype(browser: webdriver.Chrome, name: str, text: str) -> None:
    field = browser.find_element(By.NAME, name)
    field.clear()
    field.send_keys(text)


def call(site: str) -> tuple[int, Any, Any]:
    """One call of the API: status, fields, body."""
    try:
        with urlopen(f"{site}/api/orders") as answer:
            return answer.status, answer.headers, json.load(answer)
    except HTTPError as refused:
        with refused:
            return refused.code, refused.headers, json.load(refused)


def violations(browser: webdriver.Chrome) -> list[str]:
    """What the browser refused to load or run for the policy's sake."""
    said = [entry["message"] for entry in browser.get_log("browser")]
    return [text for text in said if "Content Security Policy" in text]


def test_an_edit_of_a_plan_acts_on_the_next_call(
    site: str, operator: webdriver.Chrome, free: Plan
) -> None:
    assert call(site)[1]["RateLimit-Policy"] == '"api";q=10;w=60'
    operator.get(f"{site}/admin/ratelimits/plan/{free.pk}/change/")
    retype(operator, "limits-0-rate", "2/h")
    submit(operator, "[name=_save]")
    status, fields, _ = call(site)
    assert (status, fields["RateLimit-Policy"]) == (200, '"api";q=2;w=3600')
    assert fields["RateLimit-Remaining"] == "0"
    status, fields, problem = call(site)
    assert (status, problem["detail"]) == (429, "Limit is 2 requests per hour for this address.")
    assert 1795 <= int(fields["Retry-After"]) <= 1800
    assert violations(operator) == []


def test_a_typo_is_told_beside_the_field_and_saves_nothing(
    site: str, operator: webdriver.Chrome, free: Plan
) -> None:
    operator.get(f"{site}/admin/ratelimits/plan/{free.pk}/change/")
    retype(operator, "limits-0-rate", "ten/m")
    submit(operator, "[name=_save]")
    error = operator.find_element(By.CSS_SELECTOR, ".field-rate .errorlist").text
    assert '"ten/m" is not a rate' in error
    assert "100/m" in error
    assert call(site)[1]["RateLimit-Policy"] == '"api";q=10;w=60'


def test_a_tenants_plan_is_found_by_typing_its_name(
    site: str, operator: webdriver.Chrome, free: Plan
) -> None:
    operator.get(f"{site}/admin/ratelimits/tenant/add/")
    retype(operator, "key", "org:acme")
    operator.find_element(By.CSS_SELECTOR, ".field-plan .select2-selection").click()
    operator.find_element(By.CSS_SELECTOR, ".select2-search__field").send_keys("Fr")
    option = (By.XPATH, "//li[contains(@class, 'select2-results__option') and contains(., 'Free')]")

    def chosen(browser: webdriver.Chrome) -> bool:
        # Each letter brings a list of its own, in the place of the one before.
        browser.find_element(*option).click()
        return True

    WebDriverWait(operator, 20, ignored_exceptions=[WebDriverException]).until(chosen)
    submit(operator, "[name=_save]")
    assert Tenant.objects.get(key="org:acme").plan == free


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_refusal_is_a_readable_page(site: str, browser: webdriver.Chrome, scheme: str) -> None:
    preference = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": preference})
    browser.get(f"{site}/page")
    browser.get_log("browser")
    browser.get(f"{site}/page")
    assert browser.find_element(By.TAG_NAME, "h1").text
    assert "1 request per hour" in browser.find_element(By.TAG_NAME, "main").text
    colour = browser.execute_script("return getComputedStyle(document.body).color")
    assert (colour == "rgb(0, 0, 0)") == (scheme == "light")
    assert violations(browser) == []
