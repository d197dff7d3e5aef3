"""The pages in projects that have no time zones."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.admin_pages import PAGES, POSTED, address, make_rows, posted

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.admin_site"),
    pytest.mark.usefixtures("fresh"),
]


def test_all_pages(client: Client, settings: Any) -> None:
    settings.USE_TZ, settings.TIME_ZONE = False, "Europe/Berlin"
    make_rows()
    client.force_login(User.objects.get())
    # What fails is raised by the client. Some pages are for forms only, or not for this user.
    for name in PAGES:
        assert client.get(address(name)).status_code in (200, 403, 405), name
    for name in POSTED:
        assert client.post(*posted(name)).status_code == 200, name
