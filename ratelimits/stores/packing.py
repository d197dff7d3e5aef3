"""A group of limits as the script reads it: packed once, only the costs change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import NamedTuple

from ratelimits.algorithms import Operation, State
from ratelimits.algorithms.token_bucket import rate
from ratelimits.exceptions import StoreError

from .base import MOST, Answer, Group, Slot

CODES = {"token_bucket": 1, "fixed_window": 2, "sliding_log": 3, "sliding_counter": 4}
LIMIT = Struct(">BBBB4sddddd")


class Packed(NamedTuple):
    """What stays the same from one call of a group to the next."""

    keys: tuple[str, ...]
    limits: bytes
    costs: Struct
    versions: tuple[str, ...]

    def arguments(
        self, operation: int, costs: Sequence[int], now: int | None
    ) -> tuple[str | bytes | int, ...]:
        """All that follows the script's name in EVALSHA."""
        clock = "" if now is None else now
        count, packed = len(self.versions), self.packed_costs(costs)
        return (
            len(self.keys), *self.keys, operation, clock, count, self.limits, packed, *self.versions
        )  # fmt: skip

    def packed_costs(self, costs: Sequence[int]) -> bytes:
        return self.costs.pack(*[cost if cost < MOST else MOST for cost in costs])

    def template(self, digest: str) -> Template:
        """A take by the store's clock, as EVALSHA."""
        parts = ("EVALSHA", digest, *self.arguments(Operation.TAKE.value, [0] * self.size, None))
        whole, costs = in_protocol(*parts), self.packed_costs([0] * self.size)
        tail = _bulk(self.versions)
        place = len(whole) - len(tail) - len(costs) - 2
        return Template(self, whole[:place], whole[place + len(costs) :])

    @property
    def size(self) -> int:
        """How many limits it has."""
        return len(self.limits) // LIMIT.size


class Template(NamedTuple):
    """A command as it goes over the line, but for its costs."""

    packed: Packed
    head: bytes
    tail: bytes

    def command(self, costs: Sequence[int]) -> bytes:
        return self.head + self.packed.packed_costs(costs) + self.tail


def in_protocol(*parts: str | bytes | int) -> bytes:
    """A command in the protocol of Redis."""
    return b"*%d\r\n" % len(parts) + _bulk(parts)


def _bulk(parts: Sequence[str | bytes | int]) -> bytes:
    texts = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    return b"".join([b"$%d\r\n%b\r\n" % (len(text), text) for text in texts])


def pack(group: Group, make_key: Callable[[str], str]) -> Packed:
    """Prepare a group. `make_key` turns a digest into the cache's own form of a key."""
    keys = [make_key(key) for key, _ in group.versions]
    places: dict[str, int] = {}

    def place(key: str) -> int:
        if key not in places:
            keys.append(make_key(key))
            places[key] = len(keys)
        return places[key]

    limits = b"".join(
        _pack_limit(
            slot, ident, place(slot.subject), place(log_key(slot, ident)) if is_log(slot) else 0
        )
        for slot, ident in zip(group.slots, group.idents, strict=True)
    )
    costs = Struct(f">{len(group.slots)}d")
    return Packed(tuple(keys), limits, costs, tuple(version for _, version in group.versions))


def _pack_limit(slot: Slot, ident: bytes, place: int, log: int) -> bytes:
    limit = slot.limit
    terms = limit.terms
    a, b = rate(terms) if terms.window else (0, 1)
    code, firm = CODES[limit.algorithm], 0 if limit.is_shadow else 1
    return LIMIT.pack(code, firm, place, log, ident, terms.quota, terms.burst, terms.window, a, b)


def is_log(slot: Slot) -> bool:
    return slot.limit.algorithm == "sliding_log"


def log_key(slot: Slot, ident: bytes) -> str:
    """A sliding log has a key of its own, beside its subject's."""
    return f"{slot.subject}:{ident.hex()}"


def unpack(reply: Sequence[int | bytes], count: int) -> Answer:
    """Read the script's answer about so many limits. Raises StoreError if it makes no sense."""
    try:
        return _unpacked(reply, count)
    except (TypeError, ValueError, IndexError) as error:
        raise StoreError(f"The script answered {reply!r:.200}.") from error


def _unpacked(reply: Sequence[int | bytes], count: int) -> Answer:
    if reply[0] == 1:
        return Answer(0, False, (), (), tuple(_text(version) for version in reply[1:]))
    numbers = list(map(int, reply))
    if len(numbers) != 3 + 5 * count:
        raise ValueError(numbers)
    states = tuple(map(State, numbers[3::5], numbers[4::5], numbers[5::5], numbers[6::5]))
    return Answer(numbers[1], numbers[2] == 1, states, tuple(map((1).__eq__, numbers[7::5])))


def _text(version: int | bytes) -> str:
    return version.decode() if isinstance(version, bytes) else str(version)
