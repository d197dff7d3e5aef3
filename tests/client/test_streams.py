from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from ratelimits.client.streams import apeek, peek


class Breaking(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body whose connection breaks in the middle."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"first"
        raise httpx.ReadError("broken")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"first"
        raise httpx.ReadError("broken")


async def test_who_reads_a_body_that_breaks_is_told_so() -> None:
    found: list[bytes] = []
    response = httpx.Response(429, stream=Breaking())
    assert peek(response) is None
    with pytest.raises(httpx.ReadError):
        found.extend(response.iter_raw())
    response = httpx.Response(429, stream=Breaking())
    assert await apeek(response) is None
    with pytest.raises(httpx.ReadError):
        async for part in response.aiter_raw():
            found.append(part)
    assert found == [b"first"] * 2
