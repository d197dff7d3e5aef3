"""The gate that all calls with one credential pass, in whatever process they are made."""

from __future__ import annotations

import time
from asyncio import sleep as asleep
from collections.abc import Awaitable, Callable, Sequence
from time import sleep
from typing import NamedTuple, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

from ratelimits.effects import Effect, Flow
from ratelimits.keys import digest
from ratelimits.pacing.calls import SECOND, Action, Call, Reply, Verdict, ask_of
from ratelimits.pacing.standing import Standing, above, standing
from ratelimits.pacing.terms import LONGEST, Pace, Terms
from ratelimits.stores.background import in_background
from ratelimits.stores.gates import Keys, Look
from ratelimits.texts import gettext as _

from . import booking
from .errors import NeverPasses, RetryLater, UnknownUpstream
from .headers import parse_quota
from .notes import SEEN_MOST, notes_of
from .quotas import Quota
from .upstreams import Known, forget, known, version_key, warm

P = ParamSpec("P")
T = TypeVar("T")

# How often a call whose moment was blocked while it waited, or whose terms were edited, asks again.
TRIES = 8


class Pass(NamedTuple):
    """A call may leave. `waited` are the seconds that it had to wait for that."""

    waited: float = 0.0
    # When it was to leave, by the monotonic clock.
    left: float = 0.0


class Gate:
    """Of one upstream and credential, for calls in the name of one customer, or of none.

    Every flow may raise UnknownUpstream, and CatalogUnavailable if the database can't be read.
    """

    def __init__(self, slug: str, credential: str, on_behalf_of: str | None = None) -> None:
        self.slug = slug
        self.credential = credential
        self.on_behalf_of = on_behalf_of
        book = digest("upstream", slug, credential)
        share = digest("upstream", slug, credential, on_behalf_of or "")
        self.keys = Keys(book, share, version_key(slug))
        self._last: Terms | None = None

    @property
    def terms(self) -> Terms:
        """The upstream's, as this gate last knew them."""
        if self._last is None:
            self._last = self._found(known(self.slug))[0]
        return self._last

    def enter(self, cost: int = 1, budget: float | None = None) -> Flow[Pass]:
        """Book the moment at which a call may leave, and wait for it.

        `budget` are the seconds it may wait, by default the upstream's `max_wait`. Raises
        RetryLater at once if that is too short, and NeverPasses if the cost is above a limit.
        """
        _check_cost(cost)
        slot, has_share, waited = 0, False, 0.0
        for _try in range(TRIES):
            terms, version = yield from self._terms()
            left = (terms.max_wait if budget is None else budget) - waited
            call = self._call(terms, cost, left, slot, has_share)
            reply: Reply = yield from self._ask(call, version)
            if reply.verdict is Verdict.STALE:
                forget(self.slug, reply.by)
                continue
            if reply.verdict is Verdict.LATER:
                raise self._later(reply, terms)
            wait = (reply.at - reply.now) / SECOND
            has_share = True
            if reply.verdict is Verdict.GO and (wait <= 0 or reply.at == slot):
                return Pass(waited, time.monotonic() + min(0.0, wait))
            slot = reply.at if reply.verdict is Verdict.GO else 0
            yield Effect(sleep, asleep, (wait,))
            waited += wait
        busy = _("%(upstream)s: others are refused again and again") % {"upstream": self.slug}
        raise RetryLater(1.0, "", busy)

    def block(self, seconds: float, by: str, seen: str = "", *, refused: bool = True) -> Flow[None]:
        """Nobody sends with this credential for so long from now on. Never shortens a block.

        `by` tells people whose answer it was, `seen` are its fields about limits. With `refused`
        it is counted as a refusal that our own limits should have kept us from.
        """
        terms, version = yield from self._terms()
        call = self._call(terms, 1, min(seconds, LONGEST), 0, False)
        blocks = call._replace(
            action=Action.BLOCK, by=by, seen=seen[:SEEN_MOST], refused=int(refused), told=()
        )
        yield from self._do(blocks, version)

    def lift(self) -> Flow[None]:
        """Let calls leave again, whatever was told."""
        terms, version = yield from self._terms()
        call = self._call(terms, 1, 0.0, 0, False)
        yield from self._do(call._replace(action=Action.LIFT, told=()), version)

    def observe(self, passed: Pass, quotas: Sequence[Quota], seen: str = "") -> None:
        """What an answer to a call that passed says is left. The next call takes it along."""
        paces = [pace for pace in self.terms.paces if pace.per == "credential"]
        notes_of(self.keys.book).add(paces, quotas, passed.left, seen)

    def look(self) -> Flow[Standing]:
        """How things stand. Raises StoreUnavailable or StoreError."""
        terms, _ = yield from self._terms()
        found: Look = yield Effect(booking.look, _in_thread(booking.look), (self.keys,))
        told = standing(terms, found.book, found.share, found.now)
        lines = [line.partition(":") for line in told.seen.splitlines()]
        quotas = parse_quota([(name, value.strip()) for name, _, value in lines])
        return told._replace(above=above(terms, quotas))

    def _terms(self) -> Flow[tuple[Terms, str]]:
        found = warm(self.slug)
        if found is None:
            found = yield Effect(known, sync_to_async(known, thread_sensitive=True), (self.slug,))
        terms, version = self._found(found)
        self._last = terms
        return terms, version

    def _found(self, found: Known) -> tuple[Terms, str]:
        if found.terms is None:
            raise UnknownUpstream(
                f'There is no upstream "{self.slug}". Add it in the admin, under "Upstreams".'
            )
        return found.terms, found.version

    def _call(self, terms: Terms, cost: int, budget: float, slot: int, has_share: bool) -> Call:
        guard = int(terms.guard * SECOND)
        own: list[Pace] = []
        shares: list[Pace] = []
        for pace in terms.paces:
            if pace.per == "tenant" and self.on_behalf_of is None:
                # Of nobody's name there is no share.
                continue
            if cost > pace.burst:
                raise NeverPasses(
                    f'A call of {cost} units never passes "{pace.name}" of {self.slug}, which has '
                    f"{pace.burst} at most."
                )
            (own if pace.per == "credential" else shares).append(pace)
        notes = notes_of(self.keys.book)
        return Call(
            Action.BOOK,
            tuple(ask_of(pace, cost, guard) for pace in own),
            tuple(ask_of(pace, cost, guard) for pace in shares),
            max(0, int(budget * SECOND)),
            guard,
            slot,
            has_share,
            notes.told(own),
            seen=notes.seen(),
        )

    def _do(self, call: Call, version: str) -> Flow[Reply]:
        """One that is done whatever version the terms have."""
        reply: Reply = yield from self._ask(call, version)
        if reply.verdict is Verdict.STALE:
            forget(self.slug, reply.by)
            reply = yield from self._ask(call, reply.by)
        return reply

    def _ask(self, call: Call, version: str) -> Flow[Reply]:
        if notes_of(self.keys.book).is_to_announce():
            in_background("announce", self._announce)
        ask = _at_once if booking.is_at_once() else _in_thread(booking.book)
        reply: Reply = yield Effect(booking.book, ask, (call, self.keys, version))
        return reply

    def _announce(self) -> None:
        booking.announce(credentials_key(self.slug), self.credential)

    def _later(self, reply: Reply, terms: Terms) -> RetryLater:
        names = {pace.ident: pace.name for pace in terms.paces}
        name = names.get(reply.ident, "")
        told = {"upstream": self.slug, "limit": name, "answer": reply.by}
        used_up = _("%(upstream)s: the limit %(limit)s is used up") % told
        blocked = _("%(upstream)s: blocked by %(answer)s") % told
        return RetryLater(reply.at / SECOND, name, used_up if name else blocked)


def _check_cost(cost: object) -> None:
    if not isinstance(cost, int) or isinstance(cost, bool) or cost < 1:
        raise ValueError(f"A call costs a whole number of units, 1 or more, not {cost!r}.")


async def _at_once(call: Call, keys: Keys, version: str) -> Reply:
    return booking.book(call, keys, version)


def _in_thread(do: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    # The database's connections of a test or a request are those of its own thread.
    return sync_to_async(do, thread_sensitive=booking.is_thread_sensitive())


def credentials_key(slug: str) -> str:
    """Where the store keeps which credentials are in use."""
    return digest("upstream", slug, "credentials", "")


def credentials_of(slug: str) -> list[str]:
    """The digests of credentials that were used lately, the last one first.

    Raises StoreUnavailable or StoreError.
    """
    return booking.announced(credentials_key(slug))
