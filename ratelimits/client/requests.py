"""An adapter for requests: `api.session()` has one, and it may be mounted on any session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import requests
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests.utils import rewind_body
from urllib3.exceptions import MaxRetryError, NewConnectionError, ProxyError

from ratelimits.effects import drive

from .bodies import is_problem, is_seekable, is_small
from .fields import fields_of
from .policy import Call, Failure

if TYPE_CHECKING:
    from .api import Api, Cost


class RateLimitAdapter(HTTPAdapter):
    """Lets each request of a session pass the gate of an upstream first.

    `cost` is what a request takes there, or a callable that tells it of a PreparedRequest; other
    arguments are those of requests' own adapter.
    """

    __attrs__ = [*HTTPAdapter.__attrs__, "_api", "_cost"]

    def __init__(self, api: Api, cost: Cost = 1, **options: Any) -> None:
        self._api, self._cost = api, cost
        super().__init__(**options)

    def send(
        self, request: PreparedRequest, stream: bool = False, *args: Any, **options: Any
    ) -> Response:
        """The upstream's answer. Raises RetryLater if that would take too long."""
        send = partial(super().send, request, stream, *args, **options)
        exchange = Exchange(send, request, stream)
        try:
            response: Response = drive(self._api.sending(exchange, self._cost, request).run())
        except BaseException:
            exchange.drop()
            raise
        return response


class Exchange:
    """See sending.Exchange."""

    __slots__ = ("_held", "_is_stream", "_request", "_send", "_was_sent", "call")

    def __init__(
        self, send: Callable[[], Response], request: PreparedRequest, is_stream: bool
    ) -> None:
        self._send, self._request, self._is_stream = send, request, is_stream
        self._held: Response | None = None
        self._was_sent = False
        is_keyed = bool(request.headers.get("Idempotency-Key"))
        self.call = Call(request.method or "GET", is_keyed, can_replay(request))

    def send(self) -> Response:
        if self._was_sent and hasattr(self._request.body, "seek"):
            rewind_body(self._request)
        self._was_sent = True
        self._held = self._send()
        return self._held

    def failure(self, error: Exception) -> Failure | None:
        if isinstance(error, requests.exceptions.SSLError):
            return None
        if isinstance(error, requests.ConnectTimeout) or _is_unsent(error):
            return Failure.UNSENT
        is_networks = isinstance(error, requests.ConnectionError | requests.Timeout)
        return Failure.UNANSWERED if is_networks else None

    def answer(self, response: Response) -> tuple[int, Mapping[str, str]]:
        return response.status_code, fields_of(response.headers)

    def problem(self, response: Response) -> Any:
        fields = fields_of(response.headers)
        if is_problem(fields) and self._may_read(fields):
            # Not a fault of ours, and its reader will see it too.
            with suppress(Exception):
                return response.json()
        return None

    def release(self, response: Response) -> None:
        if self._may_read(fields_of(response.headers)):
            with suppress(requests.RequestException, RuntimeError):
                _ = response.content
        self.drop()

    def drop(self) -> None:
        """Nobody needs what the server still sends."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _may_read(self, fields: Mapping[str, str]) -> bool:
        """Would the caller read all of it anyway, or is it small?"""
        return is_small(fields) or not (self._is_stream or "content-length" in fields)


def can_replay(request: PreparedRequest) -> bool:
    """Not what is read while it is sent, unless it is a file that has a beginning."""
    body: Any = request.body
    if body is None or isinstance(body, (bytes, str)):
        return True
    # What requests noted when it prepared the request, and goes back to when it is redirected.
    return is_seekable(body) and isinstance(getattr(request, "_body_position", None), int)


def _is_unsent(error: Exception) -> bool:
    """Was there no connection to send anything over?"""
    cause = error.args[0] if error.args else None
    reason = cause.reason if isinstance(cause, MaxRetryError) else None
    return isinstance(reason, NewConnectionError | ProxyError)
