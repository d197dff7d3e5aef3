from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from ratelimits.client import RetryLater
from ratelimits.models import Upstream
from tests.client.vendor import Reply, Vendor
from tests.docs.samples import sample


@pytest.mark.django_db(transaction=True)
def test_what_readme_says_of_calling(vendor: Vendor) -> None:
    Upstream.objects.create(slug="vendor")
    text = sample("README.md", "api.session()")
    text = text.replace("https://api.vendor.example", vendor.url)
    waits: list[float] = []
    done: list[str] = []
    names: dict[str, Any] = {
        "API_KEY": "key",
        "httpx": httpx,
        "try_again_in": waits.append,
        "vendor": SimpleNamespace(list_orders=lambda: done.append("listed")),
    }
    vendor.will(Reply(body=b"[1]"))
    exec(text, names)
    with names["session"], names["client"] as client:
        assert (names["orders"], waits, done) == ([1], [], ["listed"])
        assert client.get(vendor.url).status_code == 200
    vendor.will(Reply(429, {"Retry-After": "3600"}))
    with pytest.raises(RetryLater):
        # By the slot, which is everybody's; the session's call was put off.
        exec(text, names)
    names["session"].close()
    names["client"].close()
    assert (waits, done) == ([3600], ["listed"])


def test_what_readme_says_of_other_peoples_limits() -> None:
    text = sample("README.md", "parse_wait(headers")
    wait, quota = (line[2:] for line in text.splitlines() if line.startswith("# "))
    names: dict[str, Any] = {}
    exec(text, names)
    assert wait.startswith(f"{names['wait']}: seconds")
    assert quota == repr(names["quota"])
