from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from ratelimits.models import Tenant
from tests.admin_site import (
    TENANTS,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin_site")]


@pytest.fixture
def tenant() -> Tenant:
    return Tenant.objects.create(key="acme")


def label_text(key: str) -> str:
    return f"<i>{key}</i>"


def label_link(key: str) -> tuple[str, str]:
    return f"Customer {key}", f"/customers/?key={key}&x=1"


def label_script(key: str) -> tuple[str, str]:
    return "click", "javascript:alert(1)"


def label_nothing(key: str) -> None:
    return None


def label_failing(key: str) -> str:
    raise LookupError("no such customer")


def label_nonsense(key: str) -> Any:
    return (1, 2, 3)


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        (label_text, "&lt;i&gt;acme&lt;/i&gt;"),
        (label_link, '<a href="/customers/?key=acme&amp;x=1">Customer acme</a>'),
        (label_script, '<td class="field-label">click</td>'),
        (label_nothing, '<td class="field-label">-</td>'),
        (label_failing, '<td class="field-label">-</td>'),
        (label_nonsense, '<td class="field-label">-</td>'),
        ("no.such.module", '<td class="field-label">-</td>'),
    ],
)
def test_labels(
    admin_client: Client, tenant: Tenant, settings: Any, label: Any, shown: str
) -> None:
    settings.RATELIMITS = {
        "TENANT_LABEL": label if isinstance(label, str) else f"{__name__}.{label.__name__}"
    }
    page = admin_client.get(TENANTS)
    assert shown in page.content.decode()
    form = admin_client.get(f"{TENANTS}{tenant.pk}/change/").content.decode()
    assert re.sub("</?td[^>]*>", "", shown) in form
    assert "javascript:" not in form
    assert admin_client.get(TENANTS + "add/").status_code == 200


def test_without_a_label_there_is_no_column(admin_client: Client, tenant: Tenant) -> None:
    assert "field-label" not in admin_client.get(TENANTS).content.decode()


def test_labels_where_one_is_asked_about_tenants(
    admin_client: Client, tenant: Tenant, settings: Any
) -> None:
    settings.RATELIMITS = {"TENANT_LABEL": f"{__name__}.label_link"}
    link = '<a href="/customers/?key=acme&amp;x=1">Customer acme</a>'
    for action in ("reset_selected", "move_selected"):
        data = {"action": action, "_selected_action": [tenant.pk]}
        assert link in admin_client.post(TENANTS, data).content.decode()
    for name in (f"{tenant.pk}/reset/", f"{tenant.pk}/change/"):
        assert link in admin_client.get(TENANTS + name).content.decode()
    for name in ("find/", "find/reset/"):
        assert link in admin_client.post(TENANTS + name, {"key": "acme"}).content.decode()
