"""Clients that tests drive: of httpx and httpx2, sync and async, in one way; and of requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
import requests

from ratelimits.client.api import Api
from ratelimits.client.requests import RateLimitAdapter

NEWER = pytest.mark.min_python(3, 11)
KINDS = [
    pytest.param(("httpx", False), id="httpx"),
    pytest.param(("httpx", True), id="httpx-async"),
    pytest.param(("httpx2", False), id="httpx2", marks=NEWER),
    pytest.param(("httpx2", True), id="httpx2-async", marks=NEWER),
]
TIMEOUT = 20


class Caller:
    """Makes calls over transports of one kind, with a pool of one connection."""

    def __init__(self, api: Api, library: str, is_async: bool) -> None:
        self.api, self.is_async = api, is_async
        self.library = import_module(library)
        # To read the certificates of all authorities takes longer than a test.
        self.options = {"limits": self.library.Limits(max_connections=1), "verify": False}

    def run(self, do: Callable[[Any], Any], **options: Any) -> Any:
        """What an async function of a client gives. The client's methods may be awaited.

        `options` are those of the transport.
        """
        if self.is_async:
            return asyncio.run(self._arun(do, options))
        options = {"inner": self.library.HTTPTransport(**self.options), **options}
        transport = self.api.transport(**options)
        with self.library.Client(transport=transport, timeout=TIMEOUT) as client:
            return _finished(do(Plain(client)))

    def call(self, method: str, url: str, **options: Any) -> Any:
        return self.run(lambda client: client.request(method, url, **options))

    async def _arun(self, do: Callable[[Any], Any], options: dict[str, Any]) -> Any:
        options = {"inner": self.library.AsyncHTTPTransport(**self.options), **options}
        transport = self.api.async_transport(**options)
        async with self.library.AsyncClient(transport=transport, timeout=TIMEOUT) as client:
            return await do(client)

    def parts(self, *parts: bytes) -> Any:
        """A body that can be read once."""
        return _aparts(parts) if self.is_async else iter(parts)

    async def streamed(self, client: Any, url: str, read: str) -> tuple[Any, list[bytes]]:
        """A response, and its body part by part."""
        client = client.client if isinstance(client, Plain) else client
        if self.is_async:
            async with client.stream("GET", url) as response:
                return response, [part async for part in getattr(response, f"a{read}")()]
        with client.stream("GET", url) as response:
            return response, list(getattr(response, read)())


class Plain:
    """A sync client whose request() is awaited like that of an async one."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def request(self, *args: Any, **options: Any) -> Any:
        return self.client.request(*args, **options)


def _finished(coroutine: Any) -> Any:
    """What a coroutine returns that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


async def _aparts(parts: tuple[bytes, ...]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


# Those of KINDS that are async.
@pytest.fixture(params=KINDS[1::2])
def async_caller(request: pytest.FixtureRequest, api: Api) -> Iterator[Caller]:
    yield Caller(api, *request.param)


@pytest.fixture(params=KINDS)
def caller(request: pytest.FixtureRequest, api: Api) -> Iterator[Caller]:
    yield Caller(api, *request.param)


@pytest.fixture
def session(api: Api) -> Iterator[requests.Session]:
    """Of requests, with one connection at most, for which others wait."""
    with api.session() as session:
        session.mount("http://", RateLimitAdapter(api, pool_maxsize=1, pool_block=True))
        session.trust_env = False
        yield session
