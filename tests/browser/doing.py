"""What people do in a browser, waiting for what follows."""

from __future__ import annotations

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

ARRIVED = "return !window.before && document.readyState === 'complete'"


def submit(browser: webdriver.Chrome, button: str) -> None:
    """Press a button, and wait for the page that follows."""
    browser.execute_script("window.before = true")
    browser.find_element(By.CSS_SELECTOR, button).click()
    # While one page goes and the next one comes, the driver may fail at any question.
    waiting = WebDriverWait(browser, 20, ignored_exceptions=[WebDriverException])
    waiting.until(lambda _: browser.execute_script(ARRIVED))
