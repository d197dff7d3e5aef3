"""Somebody on call stops refusals for a while, and somebody else begins with new ones."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from ratelimits import usage
from ratelimits.models import Plan
from tests.browser.doing import submit

pytestmark = pytest.mark.django_db(transaction=True)

MODE = "[aria-labelledby=ratelimits-mode]"
SHADOWS = "[aria-labelledby=ratelimits-shadows]"


@pytest.fixture
def free() -> Plan:
    plan = Plan.objects.create(slug="free", name="Free", is_default=True)
    plan.limits.create(name="api", rate="3/d")
    return plan


def call(site: str) -> int:
    try:
        with urlopen(f"{site}/api/orders") as answer:
            return int(answer.status)
    except HTTPError as refused:
        with refused:
            return refused.code


def text(browser: webdriver.Chrome, css: str) -> str:
    return browser.find_element(By.CSS_SELECTOR, css).text


def switch(browser: webdriver.Chrome, mode: str) -> None:
    Select(browser.find_element(By.NAME, "mode")).select_by_value(mode)
    browser.find_element(By.NAME, "reason").send_keys("A client went mad.")
    submit(browser, f"{MODE} [type=submit]")


def test_nobody_is_refused_for_a_while(site: str, operator: webdriver.Chrome, free: Plan) -> None:
    assert [call(site) for _ in range(4)] == [200, 200, 200, 429]
    operator.get(f"{site}/admin/ratelimits/tenant/dashboard/")
    operator.get_log("browser")
    assert "“enforce”" in text(operator, MODE)
    switch(operator, "shadow")
    assert "“shadow” until" in text(operator, MODE)
    assert "Switched by operator. A client went mad." in text(operator, MODE)
    assert [call(site) for _ in range(3)] == [200] * 3
    switch(operator, "settings")
    assert "“enforce”" in text(operator, MODE)
    assert call(site) == 429
    assert operator.get_log("browser") == []


def test_a_new_limit_is_tried_and_then_refuses(
    site: str, operator: webdriver.Chrome, free: Plan
) -> None:
    free.limits.update(mode="shadow")
    assert [call(site) for _ in range(5)] == [200] * 5
    usage.flush()
    operator.get(f"{site}/admin/ratelimits/plan/{free.pk}/change/")
    operator.get_log("browser")
    assert "It would have refused 2 requests in the last day" in text(operator, SHADOWS)
    assert "127.0.0.1: 2" in text(operator, SHADOWS)
    submit(operator, f"{SHADOWS} button")
    assert "“api” enforces from now on." in text(operator, ".messagelist")
    assert operator.find_elements(By.CSS_SELECTOR, SHADOWS) == []
    assert call(site) == 429
    assert operator.get_log("browser") == []
