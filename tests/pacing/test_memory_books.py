"""Books in a process's memory: as many as are needed, looked through as seldom as can be."""

from __future__ import annotations

import pytest

from ratelimits.pacing.calls import SECOND, Action, Call, ask_of
from ratelimits.pacing.terms import Pace
from ratelimits.stores import gates
from ratelimits.stores.gates import Keys, MemoryGates
from tests.conformance.stores import NOON

ASK = ask_of(Pace("1", "calls", "bucket", 1, 60 * SECOND, 1), 1, 0)


def test_many_books_that_are_needed_are_looked_through_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gates, "MOST_BOOKS", 10)
    books, seen = MemoryGates(), set[int]()
    kept = []
    for number in range(200):
        books.run(Call(Action.BOOK, (ASK,)), Keys(f"book{number}", "share", "version"), "", NOON)
        # Each time they are looked through there is a new dictionary; none may reuse an address.
        kept.append(books._books)
        seen.add(id(books._books))
    assert len(seen) <= 7
    assert len(books._books) == 200
    # And once nobody needs them they are forgotten.
    later = NOON + 86400 * SECOND
    for number in range(200):
        books.run(Call(Action.BOOK, (ASK,)), Keys(f"new{number}", "share", "version"), "", later)
    assert len(books._books) == 200
