"""Bodies that requests sends, which go again if they can. Waiting takes no time here."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from ratelimits.client import RetryLater
from tests.client.turnstile import Turnstile
from tests.client.vendor import Reply, Vendor

REFUSED = Reply(429, {"Retry-After": "2"}, b"not now")
BROKEN = Reply(503, {}, b"not well")
TIMEOUT = 20


def generated() -> Iterator[bytes]:
    yield b"once "
    yield b"only"


class Pipe(io.BytesIO):
    """A file that can be read once."""

    def seekable(self) -> bool:
        return False


class Upload(io.BytesIO):
    """A file of which the first bytes were read before."""

    def __init__(self) -> None:
        super().__init__(b"...contents")
        self.seek(3)


@pytest.mark.parametrize("options", [{"data": b"body"}, {"data": "body"}, {"json": [1]}, {}])
def test_bodies_in_memory_are_sent_again(
    session: requests.Session, vendor: Vendor, options: dict[str, Any]
) -> None:
    vendor.will(REFUSED)
    session.post(vendor.url, timeout=TIMEOUT, **options)
    first, second = vendor.bodies
    assert first == second


def test_files_are_sent_again_from_where_they_were(
    session: requests.Session, vendor: Vendor, tmp_path: Path
) -> None:
    vendor.will(REFUSED, REFUSED, Reply(), REFUSED)
    session.post(vendor.url, data=Upload(), timeout=TIMEOUT)
    assert vendor.bodies == [b"contents"] * 3
    (tmp_path / "file").write_bytes(b"on disk")
    with (tmp_path / "file").open("rb") as file:
        session.post(vendor.url, data=file, timeout=TIMEOUT)
        session.post(vendor.url, files={"file": file}, timeout=TIMEOUT)
    assert vendor.bodies[3:5] == [b"on disk"] * 2


@pytest.mark.parametrize("body", [generated, lambda: iter([b"once ", b"only"]), Pipe])
def test_what_can_be_read_once_is_sent_once(
    session: requests.Session, vendor: Vendor, gate: Turnstile, body: Any
) -> None:
    vendor.will(REFUSED)
    with pytest.raises(RetryLater) as caught:
        session.post(vendor.url, data=body(), timeout=TIMEOUT)
    assert (caught.value.delay, caught.value.response.status_code) == (2, 429)
    assert (len(vendor.received), gate.until, gate.slept) == (1, 2, [])
    gate.until = 0
    vendor.will(BROKEN)
    assert session.put(vendor.url, data=body(), timeout=TIMEOUT).status_code == 503


def test_each_hop_of_a_redirect_is_a_call(
    session: requests.Session, vendor: Vendor, gate: Turnstile
) -> None:
    vendor.will(Reply(307, {"Location": "/there"}), REFUSED)
    assert session.post(vendor.url, data=Upload(), timeout=TIMEOUT).url == f"{vendor.url}/there"
    assert gate.entered == [0, 0, 2]
    assert vendor.bodies == [b"contents"] * 3
