"""Books of calls in stores that only know keys and values: each is one value."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from ratelimits.pacing.books import run
from ratelimits.pacing.calls import Call, Reply, Verdict

from .gates import MOST_NAMES, NAMES_KEPT, Gates, Keys, Look
from .usage_values import Make


class Held(NamedTuple):
    """The values that were read, the time, and the keys that this call has written already.

    Others may have written since what could not be written together with these.
    """

    values: Mapping[str, bytes]
    now: int
    written: Collection[str] = ()


# The values to write, each with for how many microseconds it is needed.
MakeAll = Callable[[Held], Mapping[str, tuple[bytes, int]]]


class BookValues(Protocol):
    """What is asked of a store."""

    def make_key(self, key: str) -> str: ...

    def change(self, seconds: Mapping[str, int], make: Make) -> None:
        """See usage_values.Values."""

    def change_together(
        self, keys: Sequence[str], also: Sequence[str], make: MakeAll, now: int | None
    ) -> None:
        """Read keys, and those that are `also` of interest, and write what is made of them.

        All or none if the store can do so; else it makes the rest anew until all are written.
        """

    def read_at(self, keys: Sequence[str]) -> Held:
        """The values that there are."""


class ValueGates(Gates):
    """Books in values of a store."""

    def __init__(self, store: BookValues) -> None:
        self._store = store

    def _keys(self, keys: Keys) -> Keys:
        return Keys(*map(self._store.make_key, keys))

    def run(self, call: Call, keys: Keys, version: str, now: int | None = None) -> Reply:
        book, share, current = self._keys(keys)
        # The share is written first: it is the one that a call may have without the other.
        names = [share, book] if call.shares else [book]
        replies: list[Reply] = []

        def make(held: Held) -> Mapping[str, tuple[bytes, int]]:
            in_force = held.values.get(current, b"").decode()
            if in_force and in_force != version:
                replies.append(Reply(Verdict.STALE, held.now, by=in_force))
                return {}
            asked = call._replace(has_share=True) if share in held.written else call
            fields, own = unpacked(held.values.get(book)), unpacked(held.values.get(share))
            done = run(asked, fields, own, held.now)
            replies.append(done.reply)
            made: dict[str, tuple[bytes, int]] = {}
            if done.share and share not in held.written:
                made[share] = packed({**own, **done.share}), done.share_for
            if done.book:
                made[book] = packed({**fields, **done.book}), done.book_for
            return made

        self._store.change_together(names, [current], make, now)
        return replies[-1]

    def look(self, keys: Keys) -> Look:
        book, share, _ = self._keys(keys)
        held = self._store.read_at([book, share])
        return Look(held.now, *(unpacked(held.values.get(key)) for key in (book, share)))

    def announce(self, key: str, name: str) -> None:
        def make(key: str, value: bytes | None, made: Mapping[str, bytes]) -> bytes:
            names = [other for other in (value or b"").decode().split() if other != name]
            return " ".join([*names, name][-MOST_NAMES:]).encode()

        self._store.change({self._store.make_key(key): NAMES_KEPT}, make)

    def announced(self, key: str) -> list[str]:
        made = self._store.make_key(key)
        names = self._store.read_at([made]).values.get(made, b"").decode().split()
        return names[::-1]


def packed(fields: Mapping[str, str]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def unpacked(value: bytes | None) -> dict[str, str]:
    """The fields of a book; none if the value is not ours."""
    try:
        fields = json.loads(value) if value else {}
        return {str(field): str(text) for field, text in fields.items()}
    except (ValueError, AttributeError):
        return {}
