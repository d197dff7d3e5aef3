"""What of a call is counted in which part of a Redis cluster, and one answer of several. No I/O.

All keys of one script must be in one hash slot, which a tag in the key's name decides. A caller
has one of a fixed number of tags, so that it is known where a new version of the plans is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple
from zlib import crc32

from ratelimits.algorithms import State

from .base import Answer, Group, Slot
from .packing import Packed, pack

# More than any cluster has masters, so that each has its share; few enough to write to all.
SHARDS = 64
# Limits of everyone are apart from every caller's, under the tag that a single server has.
EVERYONE = -1
ALL = (EVERYONE, *range(SHARDS))


def tag(shard: int) -> str:
    return "{rl}" if shard == EVERYONE else f"{{rl{shard}}}"


def shard_of(name: str) -> int:
    """Where a subject is counted, and what is named after it (`subject:more`) is kept."""
    return crc32(name.partition(":")[0].encode()) % SHARDS


def shard_of_slot(slot: Slot) -> int:
    return EVERYONE if slot.limit.per == "everyone" else shard_of(slot.subject)


def shards_of_version(key: str) -> Sequence[int]:
    """A tenant's version (`subject:v`) is beside its buckets; that of the plans is everywhere."""
    return (shard_of(key),) if ":" in key else ALL


class Part(NamedTuple):
    """The limits of a group that are in one shard, by their places in the group."""

    shard: int
    places: tuple[int, ...]
    versions: tuple[str, ...]
    packed: Packed


def parts_of(group: Group, make_key: Callable[[str, int], str]) -> tuple[Part, ...]:
    """In the order in which they are asked: who knows the caller's versions first, everyone last.

    So one who is stale takes nothing, and what everybody waits for is held only by those whom
    their own limits let through.
    """
    places: dict[int, list[int]] = {}
    versions = [key for key, _ in group.versions]
    for shard in [shard_of(key) for key in versions if ":" in key]:
        places.setdefault(shard, [])
    for place, slot in enumerate(group.slots):
        places.setdefault(shard_of_slot(slot), []).append(place)
    if versions and not places:
        places[shard_of(versions[0])] = []
    shards = sorted(places, key=lambda shard: shard == EVERYONE)
    return tuple(
        _part(group, shard, shard == shards[0], places[shard], make_key) for shard in shards
    )


def _part(
    group: Group, shard: int, is_first: bool, places: list[int], make_key: Callable[[str, int], str]
) -> Part:
    versions = tuple(
        (key, version)
        for key, version in group.versions
        if (shard_of(key) == shard if ":" in key else is_first)
    )
    own = Group(tuple(group.slots[place] for place in places), versions)
    keys = tuple(key for key, _ in versions)
    return Part(shard, tuple(places), keys, pack(own, lambda key: make_key(key, shard)))


def stale(group: Group, part: Part, answer: Answer) -> Answer:
    """The answer about a part's versions, as one about those of the whole group."""
    current = dict(zip(part.versions, answer.stale or (), strict=True))
    return answer._replace(stale=tuple(current.get(key, known) for key, known in group.versions))


def together(group: Group, parts: Sequence[Part], answers: Sequence[Answer]) -> Answer:
    """One answer by one clock: the one that is furthest behind, so that no wait is too short."""
    now = min(answer.now for answer in answers)
    states: dict[int, State | None] = {}
    fitted: dict[int, bool] = {}
    for part, answer in zip(parts, answers, strict=True):
        for place, state, fits in zip(part.places, answer.states, answer.fitted, strict=True):
            slot = group.slots[place]
            states[place] = state and _by_clock(slot, state, answer.now - now)
            fitted[place] = fits
    places = range(len(group.slots))
    return Answer(
        now,
        all(answer.allowed for answer in answers),
        tuple(states[place] for place in places),
        tuple(fitted[place] for place in places),
    )


def _by_clock(slot: Slot, state: State, ahead: int) -> State:
    """A state as another clock tells it, behind the one it was counted by.

    Windows stay: they begin and end with the minute, by each server's own clock.
    """
    algorithm = slot.limit.algorithm
    if not ahead or algorithm in ("fixed_window", "sliding_counter"):
        return state
    state = state._replace(time=state.time - ahead)
    if algorithm == "sliding_log":
        # The moments of release; 0 is none.
        part, unit = state.part and state.part - ahead, state.unit and state.unit - ahead
        state = state._replace(part=part, unit=unit)
    return state
