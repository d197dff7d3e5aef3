"""What a process knows of empty buckets: who was just refused is refused without asking again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from ratelimits.algorithms import Operation
from ratelimits.algorithms.base import ceil_div
from ratelimits.conf import conf

from .base import Answer, Group

# Two clocks may differ in their pace by so much: a part in a thousand.
DRIFT = 1000


@dataclass(frozen=True)
class Refusal:
    """A store's refusal of a cost. Times are this process's, monotonic, in microseconds."""

    answer: Answer
    cost: int
    heard: int
    until: int
    generation: int


class Refusals:
    """Remembers the last refusal of each group, with the group, and so under its versions.

    Others can only take more meanwhile, so a refusal holds until the moment that it told; the
    clock for that starts before the store was asked. What can give units back ends it: here at
    once, in other processes after LOCAL_REFUSALS seconds at most.
    """

    def __init__(self) -> None:
        self.generation = 0

    def known(self, operation: Operation, group: Group, costs: Sequence[int]) -> Answer | None:
        """The answer to a take that would be refused, for all that is known."""
        if operation is not Operation.TAKE:
            if operation is Operation.REFUND:
                self.forget()
            return None
        refusal = group.prepared.get(Refusal)
        if not isinstance(refusal, Refusal) or refusal.generation != self.generation:
            return None
        now = monotonic()
        if now >= refusal.until or not _covers(refusal, group, costs):
            return None
        return _answer(refusal, group, costs[0], refusal.answer.now + now - refusal.heard)

    def learn(self, group: Group, costs: Sequence[int], answer: Answer, sent: int) -> None:
        """Remember a refusal, if it is one. `sent` is from before the store was asked."""
        if answer.allowed or answer.stale or answer.unavailable or None in answer.states:
            return
        wait = _longest_wait(group, costs, answer)
        most = int(conf.LOCAL_REFUSALS * 1_000_000)
        until = sent + min(most, wait - ceil_div(wait, DRIFT))
        if len(set(costs)) == 1 and until > sent:
            group.prepared[Refusal] = Refusal(answer, costs[0], monotonic(), until, self.generation)

    def forget(self) -> None:
        """Units were given back."""
        self.generation += 1


def monotonic() -> int:
    """A clock that is never set, in microseconds."""
    return time.monotonic_ns() // 1000


def _covers(refusal: Refusal, group: Group, costs: Sequence[int]) -> bool:
    """A larger cost is refused too; but a log told of its wait for one cost only."""
    if len(set(costs)) != 1 or costs[0] < refusal.cost:
        return False
    logs = any(slot.limit.algorithm == "sliding_log" for slot in group.slots)
    return costs[0] == refusal.cost or not logs


def _longest_wait(group: Group, costs: Sequence[int], answer: Answer) -> int:
    """Microseconds; a cost that can never pass is waited for without end."""
    longest = 0
    for ask, state, fits in zip(group.asks(costs), answer.states, answer.fitted, strict=True):
        if ask.firm and not fits and state is not None:
            wait = ask.algorithm.read(state, ask.terms, ask.cost, answer.now).wait
            longest = max(longest, 10**12 if wait is None else wait)
    return longest


def _answer(refusal: Refusal, group: Group, cost: int, now: int) -> Answer:
    """The refusal as of now. What drained since is not seen in it: told is less, never more."""
    before = refusal.answer
    if cost == refusal.cost:
        return before._replace(now=now)
    fitted = tuple(
        fits and state is not None and ask.algorithm.fits(state, ask.terms, cost, now)
        for ask, state, fits in zip(
            group.asks([cost] * len(group.slots)), before.states, before.fitted, strict=True
        )
    )
    return before._replace(now=now, fitted=fitted)
