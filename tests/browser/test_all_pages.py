"""All pages under a strict policy, in light and dark, for people with and without a mouse."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from selenium import webdriver

from tests.admin_pages import PAGES, address, make_rows

pytestmark = pytest.mark.django_db(transaction=True)

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
    faults = {name: found for name in pages() if (found := faults_of(site, operator, name))}
    told = "\n".join(f"{name} {fault}" for name in faults for fault in faults[name])
    assert not told, told


def pages() -> list[str]:
    """Those that can be looked at: some only answer a form."""
    client = Client()
    client.force_login(User.objects.get())
    return [name for name in PAGES if client.get(address(name)).status_code == 200]


def faults_of(site: str, browser: webdriver.Chrome, name: str) -> list[str]:
    browser.get(site + address(name))
    found: list[str] = browser.execute_script(FAULTS)
    return found + [entry["message"] for entry in browser.get_log("browser")]
