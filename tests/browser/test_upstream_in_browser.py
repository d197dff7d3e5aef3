"""Somebody else's API told us to wait, wrongly, and an operator lets calls go on."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from selenium import webdriver
from selenium.webdriver.common.by import By

from ratelimits.client import booking, upstream
from ratelimits.client.gate import Gate, credentials_key
from ratelimits.effects import drive
from ratelimits.models import Upstream
from tests.browser.doing import submit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh")]

KEY = "sk-very-secret"


@pytest.fixture
def gate() -> Gate:
    vendor = Upstream.objects.create(slug="vendor", name="Vendor")
    vendor.limits.create(name="calls", rate="100/h", kind="bucket")
    gate = upstream("vendor", KEY).gate()
    booking.announce(credentials_key("vendor"), gate.credential)
    drive(gate.enter(40))
    drive(gate.block(86400, "429, Retry-After: 86400", "retry-after: 86400"))
    return gate


def text(browser: webdriver.Chrome, css: str) -> str:
    return browser.find_element(By.CSS_SELECTOR, css).text


def test_a_block_is_lifted(site: str, operator: webdriver.Chrome, gate: Gate) -> None:
    page = f"{site}/admin/ratelimits/upstream/{Upstream.objects.get().pk}/change/"
    operator.get(page)
    operator.get_log("browser")
    assert "because of an answer: 429, Retry-After: 86400." in text(operator, ".ratelimits-refused")
    meter = operator.find_element(By.TAG_NAME, "meter")
    assert meter.get_attribute("aria-label") == "calls: 0 of 100 left"
    operator.find_element(By.NAME, "credential").send_keys(KEY)
    submit(operator, ".ratelimits-form [type=submit]")
    assert f"Credential {gate.credential[:8]}" in text(operator, "#content-main")
    assert KEY not in operator.page_source + operator.current_url
    submit(operator, ".ratelimits-credential [type=submit]")
    submit(operator, "#content-main [type=submit]")
    assert "go on." in text(operator, ".messagelist")
    assert "The next call leaves at once." in text(operator, ".ratelimits-verdict")
    assert LogEntry.objects.count() == 1
    assert [entry["message"] for entry in operator.get_log("browser")] == []
