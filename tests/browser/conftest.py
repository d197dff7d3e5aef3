"""A real browser, headless."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from tests.browser.doing import submit

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--window-size=1300,900",
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    driver = shutil.which("chromedriver")
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if driver is None or browser is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture
def browser(chromium: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """The browser without anybody's cookies, whose console must have stayed clean."""
    chromium.get_log("browser")
    yield chromium
    chromium.delete_all_cookies()


@pytest.fixture(scope="session")
def live_server(django_db_setup: None, live_server: Any) -> Any:
    """pytest-django's, started when the tests' database is there.

    If it starts before, its threads all use one connection to the database in memory that the
    settings name, and now and then that ends in a crash.
    """
    return live_server


@pytest.fixture
def site(live_server: Any, settings: Any) -> str:
    """The address of a running site, with pages under a strict Content-Security-Policy."""
    settings.ROOT_URLCONF = "tests.browser.urls"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "tests.browser.csp.StrictPolicy"]
    return str(live_server.url)


@pytest.fixture
def operator(site: str, browser: webdriver.Chrome) -> webdriver.Chrome:
    """A browser that is logged in to the admin."""
    get_user_model().objects.create_superuser("operator", password="secret")
    browser.get(f"{site}/admin/")
    browser.find_element(By.NAME, "username").send_keys("operator")
    browser.find_element(By.NAME, "password").send_keys("secret")
    submit(browser, "[type=submit]")
    return browser
