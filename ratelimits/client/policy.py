"""What to do with an answer, or without one: pure functions of what was said, without any I/O.

Whoever refuses a call did not process it, so that any method may be repeated, if its body can be.
Everything else may have been processed, and is repeated only where twice is as good as once (RFC
9110, section 9.2.2). A wait that was told is never shortened, and nobody sends before it is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from http import HTTPStatus
from typing import NamedTuple

from ratelimits.pacing.terms import Terms

from .headers import parse_quota, parse_wait

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
BROKEN = frozenset({502, 503, 504})
# Those of HTTP's own statuses that somebody also uses for a limit mean something else as well.
HAVE_A_MEANING = frozenset(map(int, HTTPStatus)) - {429}
# An answer that says so is final, whatever its status (OpenAI's and Stripe's names).
FINAL = ("x-should-retry", "stripe-should-retry")
TOLD_BY_NAME = ("retry-after-ms", "x-ms-retry-after-ms", "retry-after")

MOST_REFUSALS = 5
MOST_FAILURES = 3
# Of a backoff, in seconds. What was told has no cap.
BASE, CAP, LEAST = 0.5, 30.0, 0.1
# Longer than any window that is sold. It is obeyed, but somebody should know.
ABSURD = 32 * 86400.0


class Call(NamedTuple):
    """A call, and what became of it so far.

    `keyed`: the server knows a repetition by an Idempotency-Key. `replays`: its body can be sent
    again. `waited` are seconds.
    """

    method: str
    keyed: bool = False
    replays: bool = True
    refusals: int = 0
    failures: int = 0
    waited: float = 0.0

    @property
    def is_safe(self) -> bool:
        """Is it as good to process it twice?"""
        return self.keyed or self.method.upper() in IDEMPOTENT

    def left(self, terms: Terms) -> float:
        """Seconds that it may still wait."""
        return max(0.0, terms.max_wait - self.waited)

    def after(self, answer: Answer, terms: Terms) -> Call:
        """With an answer counted that was not a good one."""
        if is_refusal(answer, terms):
            return self._replace(refusals=self.refusals + 1)
        return self._replace(failures=self.failures + 1)


class Answer(NamedTuple):
    """What a server said; `fields` by their lower-case names.

    `is_final`: its body says that the same call never passes.
    """

    status: int
    fields: Mapping[str, str] = {}
    is_final: bool = False


class Failure(Enum):
    """Why there is no answer."""

    UNSENT = auto()
    # It may have been processed.
    UNANSWERED = auto()


class Act(Enum):
    """What becomes of a call."""

    # The caller gets the answer, or the error.
    RETURN = auto()
    AGAIN = auto()
    # It would wait for too long, or only its caller can make it once more.
    LATER = auto()


class Verdict(NamedTuple):
    """What to do. `wait` and `block` are seconds from now: of this call, and of everybody.

    `by` says for people what was answered, `odd` what of that makes no sense. Whoever `spends` goes
    again only if the allowance for that is not used up. `is_refusal`: it was by a limit.
    """

    act: Act
    wait: float = 0.0
    block: float = 0.0
    by: str = ""
    odd: str = ""
    spends: bool = False
    is_refusal: bool = False


def decide(call: Call, answer: Answer, terms: Terms, draw: float) -> Verdict:
    """What to do with an answer. `draw` is a random number from 0 to 1."""
    if is_refusal(answer, terms):
        return _refused(call, answer, terms, draw)._replace(is_refusal=True)
    if answer.status in BROKEN:
        return _broken(call, answer, terms, draw)
    return Verdict(Act.RETURN)


def decide_failure(call: Call, failure: Failure, terms: Terms, draw: float) -> Verdict:
    """What to do when there is no answer."""
    is_safe = call.is_safe or failure is Failure.UNSENT
    return _once_more(call, terms, draw) if is_safe else Verdict(Act.RETURN)


def is_refusal(answer: Answer, terms: Terms) -> bool:
    """Did their limit refuse the call?

    A status of the upstream's own that HTTP gives another meaning, such as 403, is one only if
    its header fields speak of a limit.
    """
    if answer.status == 429:
        return True
    if answer.status not in terms.statuses:
        return False
    return answer.status not in HAVE_A_MEANING or speaks_of_limit(answer.fields)


def speaks_of_limit(fields: Mapping[str, str]) -> bool:
    if any(fields.get(name) for name in TOLD_BY_NAME):
        return True
    return any(quota.remaining == 0 for quota in parse_quota(fields))


def backoff(times: int, terms: Terms, draw: float) -> float:
    """Seconds to wait where none were told: full jitter above a floor, more each time."""
    return floor_of(terms) + draw * min(CAP, BASE * 2.0**times)


def floor_of(terms: Terms) -> float:
    """Seconds that nobody goes below: the time of one unit, by the fastest limit."""
    units = [pace.window / 1e6 / pace.quota for pace in terms.paces if pace.quota > 0]
    return min(CAP, max(LEAST, min(units, default=LEAST)))


def _refused(call: Call, answer: Answer, terms: Terms, draw: float) -> Verdict:
    told, by, odd = _told(answer)
    if _is_final(answer):
        return Verdict(Act.RETURN, block=told, by=by, odd=odd)
    wait = max(told, floor_of(terms)) if told else backoff(call.refusals, terms, draw)
    may_repeat = call.replays and call.refusals + 1 < MOST_REFUSALS
    act = Act.AGAIN if may_repeat and wait <= call.left(terms) else Act.LATER
    return Verdict(act, wait, wait, by, odd)


def _broken(call: Call, answer: Answer, terms: Terms, draw: float) -> Verdict:
    told, by, odd = _told(answer)
    goes = call.is_safe and not _is_final(answer)
    verdict = _once_more(call, terms, draw) if goes else Verdict(Act.RETURN)
    if not told:
        return verdict._replace(odd=odd)
    wait = max(told, floor_of(terms))
    if goes and _may_fail_again(call):
        act = Act.AGAIN if wait <= call.left(terms) else Act.LATER
        return Verdict(act, wait, wait, by, odd)
    return Verdict(Act.RETURN, block=wait, by=by, odd=odd)


def _once_more(call: Call, terms: Terms, draw: float) -> Verdict:
    """Again after a fault that is no limit, unless that is too much."""
    wait = backoff(call.failures, terms, draw)
    if not _may_fail_again(call) or wait > call.left(terms):
        return Verdict(Act.RETURN)
    return Verdict(Act.AGAIN, wait, spends=True)


def _may_fail_again(call: Call) -> bool:
    return call.replays and call.failures + 1 < MOST_FAILURES


def _is_final(answer: Answer) -> bool:
    said = (answer.fields.get(name, "").lower() for name in FINAL)
    return answer.is_final or "false" in said


def _told(answer: Answer) -> tuple[float, str, str]:
    """Seconds that were told, 0 if none that can be used; by what; and that, if it is odd."""
    fields = answer.fields
    name = next((name for name in TOLD_BY_NAME if fields.get(name)), "")
    said = f"{name.title()}: {fields.get(name, '')[:60]}" if name else ""
    by = f"{answer.status}, {said}" if said else str(answer.status)
    told = parse_wait(fields, status=answer.status)
    if told is None:
        return 0.0, by, said
    return told, by, said if told > ABSURD else ""
