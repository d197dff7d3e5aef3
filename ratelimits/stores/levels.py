"""What a process last heard of buckets, and of the clock of the store that holds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ratelimits.algorithms import State
from ratelimits.clock import microseconds

from .base import Answer, Group, Slot
from .refusals import monotonic

# Callers of whom the last answer is kept, whatever limits it was about: so many and as many again.
MOST_SUBJECTS = 10_000

# The limits, what they are found by, the answer, and when it was asked for by the monotonic
# clock. Made with each take: a plain tuple takes a fifth of the time.
Heard = tuple[tuple[Slot, ...], tuple[bytes, ...], Answer, int]


class Seen(NamedTuple):
    """A state as the store condensed it, None if nothing is known, and when that was."""

    state: State | None
    at: int


class Levels:
    """Remembers the last answer with each group, and the last one about each caller.

    Groups of one caller, for different scopes, share buckets: the newer knowledge counts.
    """

    def __init__(self) -> None:
        self._last: Heard | None = None
        self._young: dict[str, Heard] = {}
        self._old: dict[str, Heard] = {}
        self._resets: dict[str, int] = {}

    def learn(self, group: Group, answer: Answer, sent: int) -> None:
        """Remember an answer. `sent` is from before the store was asked."""
        if answer.stale is not None:
            return
        heard = (group.slots, group.idents, answer, sent)
        group.prepared[self] = self._last = heard
        young = self._young
        for subject in group.subjects:
            young[subject] = heard
        if len(young) > MOST_SUBJECTS:
            self._old, self._young = young, {}

    def now(self) -> int:
        """The time by the store's clock, as far as it is known; else by the process's."""
        if self._last is None:
            return microseconds()
        _, _, answer, sent = self._last
        return answer.now + monotonic() - sent

    def seen(self, group: Group, place: int) -> Seen:
        """What was last heard of one limit of a group."""
        slot, ident = group.slots[place], group.idents[place]
        newest = Seen(None, self._resets.get(slot.subject, -1))
        # The last answer about the caller is never older than the group's own.
        for heard in (
            self._young.get(slot.subject) or self._old.get(slot.subject),
            group.prepared.get(self),
        ):
            if isinstance(heard, tuple) and heard[2].now > newest.at:
                state = _state_in(heard, slot, ident)
                if state is not None:
                    newest = Seen(state, heard[2].now)
        return newest

    def forget(self, subjects: Iterable[str]) -> None:
        """Their buckets were reset: what was heard until now holds no more."""
        if len(self._resets) > MOST_SUBJECTS:
            self._resets = {}
        now = self.now()
        self._resets.update((subject, now) for subject in subjects)


def _state_in(heard: Heard, slot: Slot, ident: bytes) -> State | None:
    slots, idents, answer, _ = heard
    for other, found, state in zip(slots, idents, answer.states, strict=True):
        if found == ident and other.subject == slot.subject:
            # A changed algorithm starts fresh.
            return state if other.limit.algorithm == slot.limit.algorithm else None
    return None
