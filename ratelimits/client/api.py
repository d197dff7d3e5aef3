"""Other people's APIs, as a project calls them: upstream() and what it gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ratelimits.effects import Flow, adrive, drive
from ratelimits.exceptions import RateLimitError
from ratelimits.keys import digest

from .allowance import allowances
from .fields import fields_of
from .policy import Answer, Call, decide
from .seen import seen_of
from .sending import Exchange, Sending, block, terms_of

if TYPE_CHECKING:
    import requests

    from .gate import Gate

# What a request takes from their limits: so many units, or a callable that tells it of a request
# of the client library.
Cost = int | Callable[[Any], int]


def upstream(slug: str, credential: str = "", on_behalf_of: str | None = None) -> Api:
    """An API of somebody else's, as the admin has it under this slug.

    All calls with one credential, in all processes, share its limits. `on_behalf_of` is the key of
    the tenant for whom we call, who gets no more than the share of one. Nothing is looked up here.
    """
    _check_texts(credential, on_behalf_of)
    # Only so much of the credential stays as tells it from others.
    return Api(slug, digest("upstream", slug, credential), on_behalf_of)


def _check_texts(credential: object, on_behalf_of: object) -> None:
    if not isinstance(credential, str) or not isinstance(on_behalf_of, str | None):
        # Not what they are: one of them is a secret.
        raise TypeError("The credential is a string, and so is on_behalf_of unless it is None.")


class Api:
    """Ways to call an upstream within its limits. Made by upstream()."""

    __slots__ = ("_credential", "_on_behalf_of", "slug")

    def __init__(self, slug: str, credential: str, on_behalf_of: str | None) -> None:
        self.slug = slug
        self._credential = credential
        self._on_behalf_of = on_behalf_of

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.slug!r}>"

    def session(self, cost: Cost = 1) -> requests.Session:
        """A session of requests, each of whose requests waits for its turn.

        Redirects are requests of their own, timeouts are those of each attempt, and the `elapsed`
        of a response includes what it waited. `cost` may be a callable of a PreparedRequest.
        """
        import requests

        from .requests import RateLimitAdapter

        session = requests.Session()
        for scheme in ("https://", "http://"):
            session.mount(scheme, RateLimitAdapter(self, cost))
        return session

    def transport(self, inner: Any = None, cost: Cost = 1) -> Any:
        """For an httpx.Client, or one of httpx2: `Client(transport=api.transport())`.

        `inner` is the transport that does the sending, by default that of the client's library,
        through the proxies of the environment. `cost` may be a callable of a Request.
        """
        from .httpx import Transport

        return Transport(self, inner, cost)

    def async_transport(self, inner: Any = None, cost: Cost = 1) -> Any:
        """See transport()."""
        from .httpx import AsyncTransport

        return AsyncTransport(self, inner, cost)

    def slot(self, cost: int = 1) -> Slot:
        """`with` or `async with` it: inside, so many units may be used by any client.

        If the block raises an error that holds a refusal, that one counts as told().
        """
        return Slot(self, cost)

    def told(self, headers: Any, status: int = 429) -> float:
        """What a client of its own answers for: the header fields of a refusal.

        Everybody waits for as long as they say. Gives the seconds, 0 if nobody needs to wait.
        """
        return drive(self._told(headers, status))

    async def atold(self, headers: Any, status: int = 429) -> float:
        """See told()."""
        return await adrive(self._told(headers, status))

    def gate(self) -> Gate:
        """Where calls wait for their turn."""
        # Which is not needed to import this module: it knows stores, and models.
        from .gate import Gate

        return Gate(self.slug, self._credential, self._on_behalf_of)

    def sending(self, exchange: Exchange, cost: Cost, request: Any) -> Sending:
        """A request on its way, by a client library's exchange."""
        units = cost(request) if callable(cost) else cost
        allowance = allowances.of(self.slug, self._credential)
        return Sending(self.gate(), exchange, units, allowance)

    def _told(self, headers: Any, status: int) -> Flow[float]:
        gate, fields = self.gate(), fields_of(headers)
        terms = yield from terms_of(gate)
        # Whether it would be repeated is not ours to say.
        verdict = decide(Call("", replays=False), Answer(status, fields), terms, random.random())
        yield from block(gate, verdict, terms, seen_of(fields))
        return verdict.block


class Slot:
    """A place at the gate for a block of code."""

    __slots__ = ("_api", "_cost")

    def __init__(self, api: Api, cost: int) -> None:
        self._api, self._cost = api, cost

    def __enter__(self) -> None:
        drive(self._api.gate().enter(self._cost))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        answer = answer_of(error)
        if answer is not None:
            # If nobody can be told, since the upstream was deleted, the error still gets there.
            with suppress(RateLimitError):
                self._api.told(*answer)

    async def __aenter__(self) -> None:
        await adrive(self._api.gate().enter(self._cost))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        answer = answer_of(error)
        if answer is not None:
            with suppress(RateLimitError):
                await self._api.atold(*answer)


def answer_of(error: BaseException | None) -> tuple[Any, int] | None:
    """The header fields and the status that an SDK's error holds, by itself or in a response."""
    if error is None or isinstance(error, RateLimitError):
        return None
    # The error is on its way to somebody: whatever its attributes do, it must get there.
    with suppress(Exception):
        for holder in (getattr(error, "response", None), error):
            headers = getattr(holder, "headers", None)
            for name in ("status_code", "http_status", "status"):
                status = getattr(holder, name, None)
                if isinstance(status, int) and headers is not None:
                    return headers, status
    return None
