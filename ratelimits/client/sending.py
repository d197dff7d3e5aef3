"""One way for every call, sync or async: enter, send, look, let go, and perhaps once more.

Before anything is waited for the refused answer's connection is back in its pool: who holds one
of a few while sleeping lets others wait for nothing.
"""

from __future__ import annotations

import random
from asyncio import sleep as asleep
from collections.abc import Mapping
from contextlib import suppress
from time import sleep
from typing import Any, Protocol

from asgiref.sync import sync_to_async

from ratelimits.effects import Effect, Flow
from ratelimits.exceptions import RateLimitError
from ratelimits.logs import once
from ratelimits.pacing.terms import Terms

from .allowance import Allowance
from .errors import RetryLater
from .headers import Quota, parse_quota
from .policy import Act, Answer, Call, Failure, Verdict, decide, decide_failure
from .seen import seen_of


class Passed(Protocol):
    """That a call may leave now."""

    @property
    def waited(self) -> float:
        """Seconds that it waited for that."""


class Gate(Protocol):
    """Where the calls of all processes wait for their turn."""

    @property
    def terms(self) -> Terms:
        """Known from before, if a call has entered."""

    def enter(self, cost: int = 1, budget: float | None = None) -> Flow[Any]: ...

    def block(
        self, seconds: float, by: str, seen: str = "", *, refused: bool = True
    ) -> Flow[None]: ...

    def observe(self, passed: Any, quotas: list[Quota], seen: str = "") -> None: ...


class Exchange(Protocol):
    """One call, in the words of a client library.

    Where the library is async, so are send(), problem() and release().
    """

    call: Call

    def send(self) -> Any:
        """The response; once more from the start of the body, if it was sent before."""

    def failure(self, error: Exception) -> Failure | None:
        """What kind of error send() raised; None if it is none of the network's."""

    def answer(self, response: Any) -> tuple[int, Mapping[str, str]]:
        """Its status, and its header fields by their lower-case names."""

    def problem(self, response: Any) -> Any:
        """What a small body says that is a problem (RFC 9457); else None.

        Whoever gets the response still finds the whole body in it.
        """

    def release(self, response: Any) -> Any:
        """Give back its connection. The body can be read afterwards if it is small."""


class Sending:
    """A call on its way through a gate."""

    __slots__ = ("allowance", "call", "cost", "exchange", "gate")

    def __init__(self, gate: Gate, exchange: Exchange, cost: int, allowance: Allowance) -> None:
        self.gate, self.exchange, self.cost, self.allowance = gate, exchange, cost, allowance
        self.call = exchange.call

    def run(self) -> Flow[Any]:
        """The response that the caller gets. Raises RetryLater, or what the library raised."""
        passed: Passed = yield from self.gate.enter(self.cost)
        while True:
            self._waited(passed.waited)
            response = None
            try:
                response = yield _do(self.exchange.send)
            except Exception as error:
                verdict = self._after_failure(error)
                if verdict.act is not Act.AGAIN:
                    raise
            else:
                verdict = yield from self._after_answer(passed, response)
                if verdict.act is Act.RETURN:
                    return response
            if verdict.act is Act.LATER:
                raise self._later(verdict, response)
            passed = yield from self._enter_again(verdict, response)

    def _after_failure(self, error: Exception) -> Verdict:
        failure = self.exchange.failure(error)
        if failure is None:
            return Verdict(Act.RETURN)
        terms = self.gate.terms
        verdict = decide_failure(self.call, failure, terms, random.random())
        self.call = self.call._replace(failures=self.call.failures + 1)
        return self._afford(verdict)

    def _after_answer(self, passed: Passed, response: Any) -> Flow[Verdict]:
        status, fields = self.exchange.answer(response)
        seen = seen_of(fields)
        if seen:
            self.gate.observe(passed, parse_quota(fields), seen)
        if status < 400:
            self.allowance.give_back()
            return Verdict(Act.RETURN)
        terms = self.gate.terms
        verdict = yield from self._decide(response, Answer(status, fields), terms)
        # At once, before others run into the same refusal. If the upstream was deleted meanwhile
        # nobody needs to be told, and the answer is still its caller's.
        with suppress(RateLimitError):
            yield from block(self.gate, verdict, terms, seen)
        if verdict.act is not Act.RETURN:
            yield _do(self.exchange.release, response)
        return verdict

    def _decide(self, response: Any, answer: Answer, terms: Terms) -> Flow[Verdict]:
        draw = random.random()
        verdict = decide(self.call, answer, terms, draw)
        if verdict.act is not Act.RETURN:
            problem = yield _do(self.exchange.problem, response)
            if isinstance(problem, dict) and problem.get("retryable") is False:
                verdict = decide(self.call, answer._replace(is_final=True), terms, draw)
        self.call = self.call.after(answer, terms)
        return self._afford(verdict)

    def _afford(self, verdict: Verdict) -> Verdict:
        if verdict.spends and not self.allowance.spend():
            return Verdict(Act.RETURN, by=verdict.by, odd=verdict.odd)
        return verdict

    def _later(self, verdict: Verdict, response: Any) -> RetryLater:
        error = RetryLater(verdict.wait, reason=f"{self.gate.terms.slug}: {verdict.by}")
        error.response = response
        return error

    def _waited(self, seconds: float) -> None:
        self.call = self.call._replace(waited=self.call.waited + seconds)

    def _enter_again(self, verdict: Verdict, response: Any) -> Flow[Passed]:
        """Wait: with everybody at the gate, or alone before it. Nothing is held meanwhile."""
        if not verdict.block:
            yield Effect(sleep, asleep, (verdict.wait,))
            self._waited(verdict.wait)
        terms = self.gate.terms
        try:
            passed: Passed = yield from self.gate.enter(self.cost, self.call.left(terms))
        except RetryLater as error:
            error.response = response
            raise
        return passed


def terms_of(gate: Gate) -> Flow[Terms]:
    """What an upstream allows, for whom no call was made yet."""
    terms: Terms = yield Effect(_terms, sync_to_async(_terms), (gate,))
    return terms


def block(gate: Gate, verdict: Verdict, terms: Terms, seen: str) -> Flow[None]:
    """Have everybody wait for as long as a verdict says, if it does."""
    if verdict.odd:
        once.warning(
            f"The upstream {terms.slug!r} answered {verdict.odd!r}: no time that anybody means.",
            f"an answer of {terms.slug!r}",
        )
    if verdict.block:
        yield from gate.block(verdict.block, verdict.by, seen, refused=verdict.is_refusal)


def _terms(gate: Gate) -> Terms:
    return gate.terms


def _do(method: Any, *args: Any) -> Effect:
    """A library's sync and async methods have one name here, and each is driven in its own way."""
    return Effect(method, method, args)
