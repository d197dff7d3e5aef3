"""What a process knows of empty buckets: who was just refused is refused without asking again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import NamedTuple

from ratelimits.algorithms import Operation
from ratelimits.algorithms.base import ceil_div
from ratelimits.conf import conf
from ratelimits.limits import Limit

from .base import Answer, Group

# Two clocks may differ in their pace by so much: a part in a thousand.
DRIFT = 1000
# Refusals, and buckets that got something back, that a process remembers.
MOST = 10_000
# Refusals of one group: a smaller cost may pass where a larger one did not.
MOST_COSTS = 4
FOREVER = 10**12


class Refusal(NamedTuple):
    """A store's refusal. Times are this process's, monotonic, in microseconds.

    `places` are those of the limits that refused; all of `subjects` must be as they were.
    """

    answer: Answer
    costs: tuple[int, ...]
    places: tuple[int, ...]
    subjects: frozenset[str]
    sent: int
    heard: int
    until: int


class Refusals:
    """Remembers the last refusals of each group, with the group, and so under its versions.

    Others can only take more meanwhile, so a refusal holds until the moment that it told; the
    clock for that starts before the store was asked. What gives units back to a bucket ends
    those by this bucket: here at once, in other processes after LOCAL_REFUSALS seconds at most.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: deque[tuple[Group, tuple[Refusal, ...]]] = deque()
        # The limit that refuses by each bucket, and how many of those kept it refuses.
        self._refusing: dict[tuple[str, bytes], tuple[Limit, int]] = {}
        # When units were last given back to each subject, and to any of those not named there.
        self._returned: dict[str, int] = {}
        self._any_returned = -1

    def __len__(self) -> int:
        return max(len(self._kept), len(self._refusing), len(self._returned))

    def known(self, operation: Operation, group: Group, costs: Sequence[int]) -> Answer | None:
        """The answer to a take that would be refused, for all that is known."""
        refusals = group.prepared.get(Refusal)
        if operation is not Operation.TAKE or not isinstance(refusals, tuple):
            return None
        now = monotonic()
        for refusal in refusals:
            if now < refusal.until and _covers(refusal, group, costs):
                answer = _answer(refusal, group, costs, refusal.answer.now + now - refusal.heard)
                if self._stands(refusal, group, answer):
                    return answer
        return None

    def _stands(self, refusal: Refusal, group: Group, answer: Answer) -> bool:
        """Whether all buckets that refuse are as they were, or have less."""
        subjects: Iterable[str] = refusal.subjects
        if answer.fitted != refusal.answer.fitted:
            # A larger cost may be too much for limits that had room for a smaller one.
            pairs = zip(group.slots, answer.fitted, strict=True)
            subjects = [slot.subject for slot, fits in pairs if not fits]
        for subject in subjects:
            if self._returned.get(subject, -1) >= refusal.sent:
                return False
        # Asked last, since it is set before those that it stands for are forgotten.
        return refusal.sent > self._any_returned

    def learn(self, group: Group, costs: Sequence[int], answer: Answer, sent: int) -> None:
        """Remember a refusal, if it is one. `sent` is from before the store was asked."""
        if answer.allowed or answer.stale or answer.unavailable or None in answer.states:
            return
        most = int(conf.LOCAL_REFUSALS * 1_000_000)
        refusal = _refusal(group, costs, answer, sent, most) if most > 0 else None
        if refusal is not None and refusal.until > refusal.heard:
            with self._lock:
                self._keep(group, refusal)
                self._drop(refusal.heard)

    def _keep(self, group: Group, refusal: Refusal) -> None:
        before = group.prepared.get(Refusal)
        others = [
            other
            for other in (before if isinstance(before, tuple) else ())
            if other.until > refusal.heard and not _covers(refusal, group, other.costs)
        ]
        refusals = (refusal, *others[: MOST_COSTS - 1])
        group.prepared[Refusal] = refusals
        self._kept.append((group, refusals))
        for key, limit in _refusing(group, refusals):
            _, count = self._refusing.get(key, (limit, 0))
            self._refusing[key] = limit, count + 1

    def _drop(self, now: int) -> None:
        """Forget what is over, and the oldest if there are too many."""
        while self._kept and (len(self._kept) > MOST or self._kept[0][1][0].until <= now):
            group, refusals = self._kept.popleft()
            if group.prepared.get(Refusal) is refusals:
                del group.prepared[Refusal]
            for key, _ in _refusing(group, refusals):
                limit, count = self._refusing.pop(key)
                if count > 1:
                    self._refusing[key] = limit, count - 1

    def counted(self, operation: Operation, group: Group) -> None:
        """The store did an operation, or may have done it."""
        if operation is Operation.REFUND:
            self.returned(slot.subject for slot in group.slots)
        elif self._refusing and operation is not Operation.PEEK:
            # Other terms may leave less in use than there was: a lowered burst does.
            self.returned(
                slot.subject
                for slot, ident in zip(group.slots, group.idents, strict=True)
                if (known := self._refusing.get((slot.subject, ident)))
                and _in_other_terms(known[0], slot.limit)
            )

    def returned(self, subjects: Iterable[str]) -> None:
        """Buckets of these subjects may have got units back.

        To be told when it is over, since a refusal that is heard meanwhile may be from before.
        """
        now = monotonic()
        with self._lock:
            for subject in subjects:
                if len(self._returned) >= MOST:
                    self._any_returned = now
                    self._returned.clear()
                self._returned[subject] = now


def monotonic() -> int:
    """A clock that is never set, in microseconds."""
    return time.monotonic_ns() // 1000


def _refusing(
    group: Group, refusals: Sequence[Refusal]
) -> Iterable[tuple[tuple[str, bytes], Limit]]:
    """The buckets by which any of the refusals of a group refuses."""
    for place in {place for refusal in refusals for place in refusal.places}:
        slot = group.slots[place]
        yield (slot.subject, group.idents[place]), slot.limit


def _in_other_terms(before: Limit, now: Limit) -> bool:
    if before is now:
        return False
    return (before.algorithm, before.terms) != (now.algorithm, now.terms)


def _refusal(
    group: Group, costs: Sequence[int], answer: Answer, sent: int, most: int
) -> Refusal | None:
    """What a store's refusal means from now on; it is none if all fits."""
    waits = {}
    for place, (ask, state) in enumerate(zip(group.asks(costs), answer.states, strict=True)):
        if ask.firm and not answer.fitted[place] and state is not None:
            wait = ask.algorithm.read(state, ask.terms, ask.cost, answer.now).wait
            waits[place] = FOREVER if wait is None else wait
    if not waits:
        return None
    longest = max(waits.values())
    return Refusal(
        answer,
        tuple(costs),
        tuple(waits),
        frozenset(group.slots[place].subject for place in waits),
        sent,
        monotonic(),
        sent + min(most, longest - ceil_div(longest, DRIFT)),
    )


def _covers(refusal: Refusal, group: Group, costs: Sequence[int]) -> bool:
    """A larger cost is refused too; but a log told of its wait for one cost only."""
    if tuple(costs) == refusal.costs:
        return True
    if any(costs[place] < refusal.costs[place] for place in refusal.places):
        return False
    return all(
        cost == before or slot.limit.algorithm != "sliding_log"
        for slot, cost, before in zip(group.slots, costs, refusal.costs, strict=True)
    )


def _answer(refusal: Refusal, group: Group, costs: Sequence[int], now: int) -> Answer:
    """The refusal as of now. What drained since is not seen in it: told is less, never more."""
    before = refusal.answer
    fitted = before.fitted
    if tuple(costs) != refusal.costs:
        fitted = tuple(
            place not in refusal.places
            and state is not None
            and ask.algorithm.fits(state, ask.terms, ask.cost, now)
            for place, (ask, state) in enumerate(zip(group.asks(costs), before.states, strict=True))
        )
    return before._replace(now=now, fitted=fitted, local=True)
