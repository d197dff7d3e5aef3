"""All pages under a strict policy, in light and dark, for people with and without a mouse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.support.wait import WebDriverWait

from tests.admin_pages import PAGES, POSTED, address, make_rows, posted

pytestmark = pytest.mark.django_db(transaction=True)

ARRIVED = "return !window.before && document.readyState === 'complete'"
# With the token of a form on the page.
SEND = """
const form = document.createElement("form");
const token = document.querySelector("[name=csrfmiddlewaretoken]");
form.method = "post";
form.action = arguments[0];
for (const [name, value] of [...arguments[1], ["csrfmiddlewaretoken", token.value]]) {
  const input = document.createElement("input");
  [input.type, input.name, input.value] = ["hidden", name, value];
  form.append(input);
}
document.body.append(form);
form.submit();
"""
FAULTS = (Path(__file__).parent / "accessible.js").read_text()


@pytest.fixture
def operator(site: str, browser: webdriver.Chrome) -> webdriver.Chrome:
    """A browser that is logged in, on a site with rows on all pages."""
    make_rows()
    client = Client()
    client.force_login(User.objects.get())
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    browser.get(f"{site}/admin/login/")
    browser.add_cookie({"name": settings.SESSION_COOKIE_NAME, "value": session, "path": "/"})
    return browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_pages(site: str, operator: webdriver.Chrome, scheme: str) -> None:
    """One test for all of them, since most of the time goes into its beginning."""
    preference = [{"name": "prefers-color-scheme", "value": scheme}]
    operator.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": preference})
    operator.get_log("browser")
    all_faults = {name: found for name in pages() if (found := faults_of(site, operator, name))}
    all_faults |= {name: found for name in POSTED if (found := faults_after(site, operator, name))}
    told = "\n".join(f"{name} {fault}" for name in all_faults for fault in all_faults[name])
    assert not told, told


def pages() -> list[str]:
    """Those that can be looked at: some only answer a form."""
    client = Client()
    client.force_login(User.objects.get())
    return [name for name in PAGES if client.get(address(name)).status_code == 200]


def faults_of(site: str, browser: webdriver.Chrome, name: str) -> list[str]:
    browser.get(site + address(name))
    return faults(browser)


def faults_after(site: str, browser: webdriver.Chrome, name: str) -> list[str]:
    """Of the page that answers a form."""
    url, data = posted(name)
    # Any page with a form, which has what Django asks of one.
    browser.get(f"{site}{address('admin:ratelimits_tenant_find')}")
    fields = [(key, one) for key, value in data.items() for one in as_list(value)]
    browser.execute_script("window.before = true")
    browser.execute_script(SEND, url, fields)
    waiting = WebDriverWait(browser, 20, ignored_exceptions=[WebDriverException])
    waiting.until(lambda _: browser.execute_script(ARRIVED))
    return faults(browser)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def faults(browser: webdriver.Chrome) -> list[str]:
    found: list[str] = browser.execute_script(FAULTS)
    return found + [entry["message"] for entry in browser.get_log("browser")]
