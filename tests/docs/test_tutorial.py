"""Somebody follows docs/tutorial.md word by word, and sees what it shows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core import checks

from tests.demo import Browser
from tests.docs.pages import text_of
from tests.docs.samples import sample, steps
from tests.docs.shop import Shop
from tests.waiting import wait_until

PAGE = "docs/tutorial.md"
PLAN = "/admin/ratelimits/plan/"
TENANT = "/admin/ratelimits/tenant/"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    shop = Shop(tmp_path)
    yield shop
    shop.end()


def said(text: str) -> str:
    """What an answer of the admin says, without its markup."""
    return unescape(" ".join(re.sub(r"<[^>]*>", " ", text).split()))


def row_of(form: dict[str, str], name: str) -> str:
    """What the fields of the limit of this name begin with."""
    (row,) = [field for field in form if form[field] == name and field.endswith("-name")]
    return row.removesuffix("-name")


def edit_plan(admin: Browser, shop: Shop) -> None:
    form = admin.form(f"{PLAN}1/change/")
    assert form["name"] == "Free"
    row = row_of(form, "requests")
    answer = admin.post(f"{PLAN}1/change/", {**form, f"{row}-rate": "5/h", f"{row}-burst": ""})
    assert answer.status == 302
    page = said(admin.get(PLAN).body)
    assert "“daily” never refuses anything" in page and "Dashboard" in page


def add_tenant(admin: Browser, shop: Shop) -> None:
    def page() -> str:
        return said(admin.get(f"{TENANT}add/").body)

    wait_until(lambda: "Seen lately, without a row: user:2" in page())
    form = {**admin.form(f"{TENANT}add/"), "key": "user:2", "name": "Acme"}
    limit = {"name": "requests", "rate": "10/h"}
    form |= {f"limits-0-{name}": value for name, value in limit.items()}
    form |= {"limits-0-algorithm": "token_bucket", "limits-0-mode": "enforce"}
    assert admin.post(f"{TENANT}add/", {**form, "limits-TOTAL_FORMS": "1"}).status == 302


def raise_it(admin: Browser, shop: Shop) -> None:
    page = said(admin.get(f"{TENANT}1/change/").body)
    assert "Refused now by “requests” (10 requests per hour)" in page
    fields = {"limit": "requests", "rate": "100/h", "until": "week", "reason": "their import"}
    if "until the end of Friday" in page:
        fields["until"] = "friday"
    form = admin.form(f"{TENANT}1/change/")
    assert form["raise-limit"] == "requests", "it is chosen already"
    form |= {f"raise-{name}": value for name, value in fields.items()}
    assert admin.post(f"{TENANT}1/raise/", form).status == 302
    assert "then 10 requests per hour again" in said(admin.get(f"{TENANT}1/change/").body)


def explain(admin: Browser, shop: Shop) -> None:
    refusal = shop.request("/orders", Authorization="Basic YWNtZTphY21lLXBhc3N3b3Jk")
    form = admin.form("/admin/ratelimits/tenant/receipt/")
    assert refusal.status == 429 and "instance" in refusal.body
    answer = admin.post(f"{TENANT}receipt/", {**form, "receipt": refusal.body})
    assert "user:2" in said(answer.body) and "requests" in said(answer.body)


def test_step_by_step(shop: Shop) -> None:
    _, _, _, start = [*steps(PAGE, "1. An empty project")[0].text.splitlines()]
    shop.type(start.removeprefix("$ "), [])
    for each in [*steps(PAGE, "2. Add the app"), *steps(PAGE, "3. The first call")]:
        shop.follow(each)
    admin = Browser(shop)
    admin.log_in("admin", "admin-password")
    edit_plan(admin, shop)
    for each in [*steps(PAGE, "4. Edit the plan"), *steps(PAGE, "5. A refusal")]:
        shop.follow(each)
    explain(admin, shop)
    add_tenant(admin, shop)
    for each in steps(PAGE, "6. A limit of its own"):
        shop.follow(each)
    calls, after = steps(PAGE, "7. Until Friday")
    shop.follow(calls)
    raise_it(admin, shop)
    shop.follow(after)


@pytest.mark.django_db
def test_before_it_is_real(settings: Any) -> None:
    """Its settings have nothing to complain of, but for the plans that are missing here."""
    told: dict[str, Any] = {}
    exec(sample(PAGE, '"ratelimits": {'), told)
    settings.CACHES, settings.RATELIMITS = told["CACHES"], told["RATELIMITS"]
    found = checks.run_checks(tags=["ratelimits"], include_deployment_checks=True)
    assert [message for message in found if not str(message.id).startswith("ratelimits.W03")] == []


def test_what_is_typed_into_the_admin() -> None:
    """The page says what the functions above do."""
    text = text_of(PAGE)
    for word in (
        "`5/h`",
        "“daily” never refuses anything",
        "`user:2`",
        "name: `Acme`",
        "`10/h`",
        "`100/h`",
        "their import",
    ):
        assert word in text
