"""A process's own counts while the store is away, and what it owes the store for them."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from ratelimits.algorithms import ALGORITHMS, Ask, Operation, State, run

from .base import Answer, Group, Slot
from .levels import Levels, Seen
from .memory import MOST_BUCKETS, Bucket, MemoryStore
from .sharing import part_of, quiet, share_of


class Book(NamedTuple):
    """A limit as the store knows it, the process's share of it, and what the store has of that.

    `known` is a state of the share: its part of what was heard from the store at `heard`, and
    what the store was charged with since.
    """

    whole: Slot
    share: Slot
    known: State
    heard: int


class Bill(NamedTuple):
    """What one caller's buckets owe the store."""

    group: Group
    costs: list[int]


class LocalStore(MemoryStore):
    """Counts a share of each limit, from the level that was last seen in the store.

    A bucket owes how much fuller it is than it would be of what the store knows alone: so what
    has drained meanwhile, or was of a window that has ended, is owed no more. Buckets that
    newcomers share in a flood owe nothing, since nobody knows who took how much.
    """

    def __init__(self, levels: Levels, size: int = MOST_BUCKETS) -> None:
        super().__init__(size)
        self._levels = levels
        # Whoever holds this one does not wait for any other.
        self._turn = Lock()
        self.paying = Lock()
        self._books: dict[str, dict[bytes, Book]] = {}

    def count(
        self,
        operation: Operation,
        group: Group,
        costs: Sequence[int],
        now: int,
        workers: int,
        unpublished: Sequence[bool],
        done: bool,
    ) -> Answer:
        """One operation on a share of each limit; those that are `unpublished` never refuse.

        With `done` the store may have done the same, and counts as if it had.
        """
        shares = Group(
            tuple(
                share_of(quiet(slot) if silent else slot, workers)
                for slot, silent in zip(group.slots, unpublished, strict=True)
            )
        )
        with self._turn:
            self._open(group, shares, now, workers)
            answer = super().run(operation, shares, costs, now)
            if done and answer.allowed and operation is not Operation.PEEK:
                way = Operation.REFUND if operation is Operation.REFUND else Operation.CHARGE
                for slot, ident, cost in zip(shares.slots, shares.idents, costs, strict=True):
                    self._amend(way, slot.subject, ident, cost, now)
        return answer._replace(shares=tuple(slot.limit for slot in shares.slots))

    def _open(self, group: Group, shares: Group, now: int, workers: int) -> None:
        """Begin the buckets that are not there yet, and those that more was heard of since."""
        slots = list(zip(shares.slots, shares.idents, strict=True))
        # All of them first: to look for room may drop some.
        keys = [self._key(slot, ident, now) for slot, ident in slots]
        for place, (share, ident) in enumerate(slots):
            if keys[place] == (share.subject, ident):
                seen = self._levels.seen(group, place)
                self._open_one(group.slots[place], share, ident, seen, now, workers)

    def _open_one(
        self, whole: Slot, share: Slot, ident: bytes, seen: Seen, now: int, workers: int
    ) -> None:
        books, name = self._books.setdefault(share.subject, {}), share.limit.algorithm
        book, bucket = books.get(ident), self._buckets.get((share.subject, ident))
        if bucket is None or bucket.algorithm != name:
            # A changed algorithm starts fresh.
            book = bucket = None
        if book is not None and seen.at <= book.heard:
            # The limit may have been edited since.
            books[ident] = Book(whole, share, book.known, book.heard)
            return
        owed = _owed(book, bucket.state, now) if book is not None and bucket is not None else 0
        algorithm, terms = ALGORITHMS[name], share.limit.terms
        part = None if seen.state is None else part_of(seen.state, name, workers)
        known = algorithm.settle(part, terms, now)
        state = algorithm.add(known, terms, owed, now)
        until = algorithm.expires(state, terms)
        self._buckets[share.subject, ident] = Bucket(name, state, until)
        books[ident] = Book(whole, share, known, seen.at)

    def _amend(self, operation: Operation, subject: str, ident: bytes, cost: int, now: int) -> None:
        """The store knows of more, or of less, than was thought."""
        books = self._books.get(subject, {})
        book = books.get(ident)
        if book is not None:
            limit = book.share.limit
            ask = Ask(ALGORITHMS[limit.algorithm], limit.terms, cost)
            (known,) = run(operation, [ask], [book.known], now).states
            books[ident] = book._replace(known=known)

    def _sweep(self, now: int) -> None:
        super()._sweep(now)
        kept = {
            subject: {ident: book for ident, book in books.items() if (subject, ident) in self}
            for subject, books in self._books.items()
        }
        self._books = {subject: books for subject, books in kept.items() if books}

    def __contains__(self, key: tuple[str, bytes]) -> bool:
        return key in self._buckets

    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        with self._turn:
            super().reset(group, subjects)
            for subject in (*subjects, *group.subjects):
                self._books.pop(subject, None)

    def subjects(self) -> list[str]:
        """Whose buckets are counted here."""
        with self._turn:
            return list(self._books)

    def bill(self, subject: str, now: int, last: bool) -> Bill:
        """What a caller owes: the store is taken to know it from now on.

        If this is the `last` that is asked and nothing is owed, the caller's buckets are dropped.
        """
        slots, costs = [], []
        with self._turn:
            books = self._books.get(subject, {})
            for ident, book in books.items():
                state = self._buckets[subject, ident].state
                cost = _owed(book, state, now)
                if cost:
                    slots.append(book.whole)
                    costs.append(cost)
                    books[ident] = book._replace(known=state)
            if last and not costs:
                self._drop(subject)
        return Bill(Group(tuple(slots)), costs)

    def take_back(self, bill: Bill, now: int) -> None:
        """A bill was not paid."""
        with self._turn:
            for slot, ident, cost in zip(
                bill.group.slots, bill.group.idents, bill.costs, strict=True
            ):
                self._amend(Operation.REFUND, slot.subject, ident, cost, now)

    def _drop(self, subject: str) -> None:
        for ident in self._books.pop(subject, {}):
            self._buckets.pop((subject, ident), None)


def _owed(book: Book, state: State, now: int) -> int:
    """In whole units, by how much less is left than if only the store's part had been used."""
    algorithm, terms = ALGORITHMS[book.share.limit.algorithm], book.share.limit.terms
    if_known, left = (
        algorithm.room(algorithm.settle(each, terms, now), terms, now)
        for each in (book.known, state)
    )
    return max(0, if_known - left)
