from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from ratelimits.client import RetryLater
from ratelimits.models import Upstream
from tests.client.vendor import Reply, Vendor

README = Path(__file__).parent.parent.parent / "README.md"


def sample_of(heading: str) -> str:
    """The first code under a heading."""
    _, _, text = README.read_text().partition(f"## {heading}")
    return re.split(r"```(?:python)?\n", text, maxsplit=2)[1]


@pytest.mark.django_db(transaction=True)
def test_what_readme_says_of_calling(vendor: Vendor) -> None:
    Upstream.objects.create(slug="vendor")
    sample = sample_of("Calling other people's APIs")
    sample = sample.replace("https://api.vendor.example", vendor.url)
    waits: list[float] = []
    done: list[str] = []
    names: dict[str, Any] = {
        "API_KEY": "key",
        "httpx": httpx,
        "try_again_in": waits.append,
        "vendor": SimpleNamespace(list_orders=lambda: done.append("listed")),
    }
    vendor.will(Reply(body=b"[1]"))
    exec(sample, names)
    with names["session"], names["client"] as client:
        assert (names["orders"], waits, done) == ([1], [], ["listed"])
        assert client.get(vendor.url).status_code == 200
    vendor.will(Reply(429, {"Retry-After": "3600"}))
    with pytest.raises(RetryLater):
        # By the slot, which is everybody's; the session's call was put off.
        exec(sample, names)
    names["session"].close()
    names["client"].close()
    assert (waits, done) == ([3600], ["listed"])


def test_what_readme_says_of_other_peoples_limits() -> None:
    sample = sample_of("Other people's limits")
    wait, quota = (line[2:] for line in sample.splitlines() if line.startswith("# "))
    names: dict[str, Any] = {}
    exec(sample, names)
    assert wait.startswith(f"{names['wait']}: seconds")
    assert quota == repr(names["quota"])
