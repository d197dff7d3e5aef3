"""Looking into the body of a response of httpx or httpx2, from which its reader misses nothing."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any

from .bodies import SMALL


def peek(response: Any) -> bytes | None:
    """The body as it came, if it is small. It can still be read from the response."""
    body = _put_back(response, iter(response.stream))
    try:
        while body.goes_on():
            body.add(next(body.rest, None))
    except Exception as error:
        body.error = error
    return body.whole()


async def apeek(response: Any) -> bytes | None:
    """See peek()."""
    body = _put_back(response, aiter(response.stream))
    try:
        while body.goes_on():
            body.add(await anext(body.rest, None))
    except Exception as error:
        body.error = error
    return body.whole()


def decoded(response: Any, body: bytes) -> Any:
    """What a body says that is JSON, however it was compressed. Raises the library's errors."""
    return type(response)(response.status_code, headers=response.headers, content=body).json()


class PutBack:
    """A stream of which the head was read already."""

    def __init__(self, stream: Any, rest: Any) -> None:
        self.stream, self.rest = stream, rest
        self.head: list[bytes] = []
        self.is_over = False
        # What broke it, which its reader is told in the same place.
        self.error: Exception | None = None

    def goes_on(self) -> bool:
        return not self.is_over and sum(map(len, self.head)) <= SMALL

    def add(self, chunk: bytes | None) -> None:
        if chunk is None:
            self.is_over = True
        else:
            self.head.append(chunk)

    def whole(self) -> bytes | None:
        return b"".join(self.head) if self.is_over else None

    def __iter__(self) -> Iterator[bytes]:
        yield from self.head
        if self.error is not None:
            raise self.error
        yield from self.rest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.head:
            yield chunk
        if self.error is not None:
            raise self.error
        async for chunk in self.rest:
            yield chunk

    def close(self) -> None:
        if hasattr(self.rest, "close"):
            self.rest.close()
        self.stream.close()

    async def aclose(self) -> None:
        if hasattr(self.rest, "aclose"):
            await self.rest.aclose()
        await self.stream.aclose()


def library_of(value: Any) -> Any:
    """httpx or httpx2, whichever a request or a response is one of, or of a class derived from."""
    kinds = (kind for kind in reversed(type(value).__mro__) if kind is not object)
    return sys.modules[next(kinds).__module__.partition(".")[0]]


def _put_back(response: Any, rest: Any) -> PutBack:
    response.stream = body = _kind(library_of(response))(response.stream, rest)
    return body


@cache
def _kind(library: Any) -> type[PutBack]:
    """With the bases that the clients of this library insist on."""
    return type("PutBack", (PutBack, library.SyncByteStream, library.AsyncByteStream), {})
