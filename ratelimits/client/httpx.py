"""Transports for httpx and httpx2, by what both have in common.

Neither is imported: whoever sends a request has done so.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ratelimits.effects import adrive, drive

from .bodies import is_problem, is_seekable
from .fields import fields_of
from .inner import Inner
from .policy import Call, Failure
from .streams import apeek, decoded, peek

if TYPE_CHECKING:
    from .api import Api, Cost

# Names of the libraries' errors, which are the same in both.
UNSENT = frozenset({"ConnectError", "ConnectTimeout", "ProxyError"})
UNANSWERED = frozenset({"NetworkError", "TimeoutException", "RemoteProtocolError"})
# The project's own pool was used up: sending more would not help.
OURS = frozenset({"PoolTimeout"})


class Transport:
    """Lets each request of a client pass the gate of an upstream first."""

    def __init__(self, api: Api, inner: Any, cost: Cost) -> None:
        self._api, self._cost = api, cost
        self._inner = Inner(inner, "HTTPTransport")

    def handle_request(self, request: Any) -> Any:
        """The upstream's answer. Raises RetryLater if that would take too long."""
        exchange = SyncExchange(self._inner.of(request), request)
        try:
            return drive(self._api.sending(exchange, self._cost, request).run())
        except BaseException:
            exchange.drop()
            raise

    def close(self) -> None:
        for inner in self._inner.all():
            inner.close()

    def __enter__(self) -> Transport:
        if self._inner.given is not None:
            self._inner.given.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        for inner in self._inner.all():
            inner.__exit__(*error)


class AsyncTransport:
    """See Transport."""

    def __init__(self, api: Api, inner: Any, cost: Cost) -> None:
        self._api, self._cost = api, cost
        self._inner = Inner(inner, "AsyncHTTPTransport")

    async def handle_async_request(self, request: Any) -> Any:
        """See Transport.handle_request()."""
        exchange = AsyncExchange(self._inner.of(request), request)
        try:
            return await adrive(self._api.sending(exchange, self._cost, request).run())
        except BaseException:
            # Also when somebody no longer wants to wait.
            await exchange.drop()
            raise

    async def aclose(self) -> None:
        for inner in self._inner.all():
            await inner.aclose()

    async def __aenter__(self) -> AsyncTransport:
        if self._inner.given is not None:
            await self._inner.given.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        for inner in self._inner.all():
            await inner.__aexit__(*error)


class Exchange:
    """What both kinds of exchange have in common: see sending.Exchange."""

    def __init__(self, inner: Any, request: Any) -> None:
        self._inner, self._request = inner, request
        self._held: Any = None
        self._was_sent = False
        self._file, replays = body_of(request)
        self._start = self._file.tell() if self._file is not None else 0
        self.call = Call(request.method, bool(request.headers.get("Idempotency-Key")), replays)

    def failure(self, error: Exception) -> Failure | None:
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & OURS or any(isinstance(cause, ssl.SSLError) for cause in _causes(error)):
            return None
        if names & UNSENT:
            return Failure.UNSENT
        return Failure.UNANSWERED if names & UNANSWERED else None

    def answer(self, response: Any) -> tuple[int, Mapping[str, str]]:
        return response.status_code, fields_of(response.headers)

    def _rewind(self) -> None:
        if self._was_sent and self._file is not None:
            self._file.seek(self._start)
        self._was_sent = True

    def _keep(self, response: Any) -> Any:
        # As the clients do with what they get; this one they may never see.
        response.request = self._request
        self._held = response
        return response


class SyncExchange(Exchange):
    def send(self) -> Any:
        self._rewind()
        return self._keep(self._inner.handle_request(self._request))

    def problem(self, response: Any) -> Any:
        body = peek(response) if is_problem(fields_of(response.headers)) else None
        with suppress(Exception):
            return decoded(response, body) if body is not None else None

    def release(self, response: Any) -> None:
        if peek(response) is not None:
            with suppress(Exception):
                response.read()
        self.drop()

    def drop(self) -> None:
        """Nobody needs what the server still sends."""
        held, self._held = self._held, None
        if held is not None:
            held.close()


class AsyncExchange(Exchange):
    async def send(self) -> Any:
        self._rewind()
        return self._keep(await self._inner.handle_async_request(self._request))

    async def problem(self, response: Any) -> Any:
        body = await apeek(response) if is_problem(fields_of(response.headers)) else None
        with suppress(Exception):
            return decoded(response, body) if body is not None else None

    async def release(self, response: Any) -> None:
        if await apeek(response) is not None:
            with suppress(Exception):
                await response.aread()
        await self.drop()

    async def drop(self) -> None:
        """See SyncExchange.drop()."""
        held, self._held = self._held, None
        if held is not None:
            await held.aclose()


def body_of(request: Any) -> tuple[Any, bool]:
    """The file that is sent, if it is one; and whether the body can be sent again."""
    # There is no telling by the public names that a stream is a file.
    file = getattr(request.stream, "_stream", None)
    if is_seekable(file):
        return file, True
    parts = getattr(request.stream, "fields", None)
    if parts is not None:
        # Of a form, whose files the library goes back to the start of by itself.
        files = [
            part.file for part in parts if not isinstance(getattr(part, "file", ""), str | bytes)
        ]
        return None, all(map(is_seekable, files))
    return None, any(kind.__name__ == "ByteStream" for kind in type(request.stream).__mro__)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
