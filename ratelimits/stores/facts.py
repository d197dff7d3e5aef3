"""What stores tell of themselves and of their servers, for whoever looks after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Facts:
    """Of a store that has nothing to tell."""


@dataclass(frozen=True)
class MemoryFacts(Facts):
    """Of one process's memory: buckets that are not full, and how many it keeps at most."""

    buckets: int
    most: int


@dataclass(frozen=True)
class Keys:
    """What a look at some of a server's keys found. `examples` are keys without an end."""

    looked_at: int
    ours: int
    endless: int
    examples: tuple[str, ...]
    complete: bool


@dataclass(frozen=True)
class RedisFacts(Facts):
    """INFO of a Redis or Valkey, its setting `save`, and its keys; None for what it won't tell."""

    info: Mapping[str, Any] | None
    save: str | None
    keys: Keys | None


@dataclass(frozen=True)
class ClusterFacts(Facts):
    """Those of each primary of a Redis cluster, by its address; None for one that is away."""

    nodes: Mapping[str, RedisFacts | None]


@dataclass(frozen=True)
class MemcachedFacts(Facts):
    """What each server answered to `stats`, by its address; None for one that is away."""

    stats: Mapping[str, Mapping[str, Any] | None]


@dataclass(frozen=True)
class DatabaseFacts(Facts):
    """Rows of the table of counts, of which so many have expired. `most` are looked at."""

    vendor: str
    rows: int
    expired: int
    most: int
