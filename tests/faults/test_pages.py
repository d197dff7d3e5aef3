"""Every page of the admin while the store hangs: there within a second, whatever it can't know."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from ratelimits.stores import forget_stores
from ratelimits.usage.asking import away
from tests.admin_pages import PAGES, address, make_rows
from tests.servers import RedisServer
from tests.settings import redis_caches

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls("tests.admin_site")]

# Somebody else may have the machine for a while.
TRIES = 4


@pytest.fixture
def operator(server: RedisServer, settings: Any, client: Client) -> Client:
    settings.CACHES = redis_caches(server.url)
    # What is in production, and not in other tests.
    settings.RATELIMITS = {"STORE_TIMEOUT": 0.05}
    make_rows()
    client.force_login(User.objects.get())
    return client


def test_all_pages_while_the_store_hangs(operator: Client, server: RedisServer) -> None:
    answered = {name: operator.get(address(name)).status_code for name in PAGES}
    server.stop()
    for name, status in answered.items():
        # No answer is an error, nor another than while it was there.
        assert operator.get(address(name)).status_code == status, name
    slow = {name: took for name in PAGES if (took := quickest(operator, address(name))) > 1}
    assert slow == {}


def test_all_pages_while_others_keep_things_in_our_place(
    operator: Client, server: RedisServer
) -> None:
    answered = {name: operator.get(address(name)).status_code for name in PAGES}
    store = server.client()
    for key in store.scan_iter():
        store.delete(key)
        store.rpush(key, "theirs")
    assert {name: operator.get(address(name)).status_code for name in PAGES} == answered
    assert (
        "unavailable"
        in operator.get(address("admin:ratelimits_tenant_changelist")).content.decode()
    )


def quickest(client: Client, url: str) -> float:
    """Seconds until a page is there that is the first to find the store hanging."""
    took: list[float] = []
    while not took or (min(took) > 1 and len(took) < TRIES):
        # Nobody knows yet that it is away.
        forget_stores()
        away.forget()
        began = time.perf_counter()
        client.get(url)
        took.append(time.perf_counter() - began)
    return min(took)
