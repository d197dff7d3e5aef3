"""What a store is asked and what it answers, whatever holds the counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

from asgiref.sync import sync_to_async

from ratelimits.algorithms import ALGORITHMS, Ask, Operation, State
from ratelimits.exceptions import StoreUnavailable
from ratelimits.limits import Limit, Owner

from .facts import Facts
from .gates import Gates
from .usage import Tables

# Above every capacity, and still exact in a store's doubles.
MOST = 2**50


class Slot(NamedTuple):
    """One limit and whose bucket it is counted in: a digest that names the caller."""

    limit: Limit
    subject: str


@dataclass(frozen=True, eq=False)
class Group:
    """The limits of one take, prepared once and used for many; each is only equal to itself.

    `versions` are the keys and the caller's values of what the limits were read from; a
    value of "" is one that nobody has set yet. `own` tells that the tenant has limits of its own;
    `cost` is what an operator set for requests of this `scope`, None for what the code says.
    `owner` is who asks, for whoever looks at what was asked and refused.
    """

    slots: tuple[Slot, ...]
    versions: tuple[tuple[str, str], ...] = ()
    own: bool = False
    cost: int | None = None
    scope: str = ""
    owner: Owner | None = None

    @cached_property
    def idents(self) -> tuple[bytes, ...]:
        """What the state of each limit is found by, within its subject's."""
        return tuple(ident_of(slot.limit) for slot in self.slots)

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        """Whose buckets they are, each once."""
        return tuple(dict.fromkeys(slot.subject for slot in self.slots))

    @cached_property
    def prepared(self) -> dict[object, object]:
        """Where a store keeps what it makes of this group."""
        return {}

    def asks(self, costs: Sequence[int]) -> tuple[Ask, ...]:
        """What is asked of each limit; made once for costs that are those of the last call."""
        kept = self.prepared.get(Ask)
        if isinstance(kept, Asks) and kept.costs == costs:
            return kept.asks
        asks = tuple(
            Ask(ALGORITHMS[limit.algorithm], limit.terms, min(cost, MOST), not limit.is_shadow)
            for (limit, _), cost in zip(self.slots, costs, strict=True)
        )
        self.prepared[Ask] = Asks(list(costs), asks)
        return asks


class Asks(NamedTuple):
    """What was asked at certain costs."""

    costs: list[int]
    asks: tuple[Ask, ...]


def ident_of(limit: Limit) -> bytes:
    return blake2b((limit.ident or limit.name).encode(), digest_size=4).digest()


class Answer(NamedTuple):
    """What a store did. Time in microseconds, by the store's clock.

    `states` are condensed for `Algorithm.read`; None for a limit that could not be counted
    and was let pass. `stale` holds the current versions if the caller's differ; then nothing
    was done and the rest is empty. `unavailable` is a refusal because the store is away. `local`
    is an answer of this process itself: by what it knows, or while the store is away. `shares`
    are the limits that the states are of, if they are only this process's part of those asked.
    """

    now: int
    allowed: bool
    states: tuple[State | None, ...]
    fitted: tuple[bool, ...]
    stale: tuple[str, ...] | None = None
    unavailable: bool = False
    local: bool = False
    shares: tuple[Limit, ...] = ()


class Store(ABC):
    """Holds the counts, and does one operation over a group of limits at a time.

    Every method may raise StoreUnavailable, or StoreError for what only a bug explains.
    """

    @property
    def thread_sensitive(self) -> bool:
        """Whether async callers must be served in the thread that Django's ORM is used in."""
        return False

    @abstractmethod
    def run(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        """Do the operation, all or nothing. `now` replaces the store's own clock."""

    def check(self) -> None:  # noqa: B027 (most have nothing to check)
        """Raises InvalidStore if the alias's settings can't work. Asks no server."""

    def when_back(self, then: Callable[[], None]) -> None:  # noqa: B027 (most are of one piece)
        """What to do each time that a part of the store is back, of those that can be away."""

    def once_back(self, then: Callable[[], None]) -> None:  # noqa: B027 (only a guard looks for it)
        """Do something when the store is back; nothing if nobody knows that it is away."""

    @abstractmethod
    def versions(self, keys: Sequence[str]) -> tuple[str, ...]:
        """The current versions, "" for a key that is not set."""

    @abstractmethod
    def set_versions(self, versions: Mapping[str, str], seconds: int) -> None:
        """Publish versions, kept for so many seconds."""

    @abstractmethod
    def reset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        """Forget what the subjects, and those of the group, have used in all their limits."""

    @property
    def address(self) -> str:
        """Where the counts are, for people to read. Has no password in it."""
        return "nowhere"

    def facts(self) -> Facts:
        """What its server tells of itself. May ask it several times."""
        return Facts()

    def lifetime(self, key: str) -> float | None:
        """For how many seconds a version is still kept; infinite if for ever.

        None if it is not set, or if the store can't tell.
        """
        return None

    @cached_property
    def usage(self) -> Tables:
        """Where it keeps what was asked and refused. Raises StoreUnavailable if nowhere."""
        raise StoreUnavailable(f"{type(self).__name__} keeps no usage.")

    @cached_property
    def gates(self) -> Gates:
        """Where it keeps the books of calls to others. Raises StoreUnavailable if nowhere."""
        raise StoreUnavailable(f"{type(self).__name__} keeps no books of calls.")

    def close(self) -> None:  # noqa: B027 (some have none)
        """End its connections, for who made a store to be used once."""

    def recent_processes(self, seconds: int) -> int:
        """How many processes were announced within the last so many seconds."""
        return 1

    @abstractmethod
    def count_processes(self, ident: str, seconds: int) -> int:
        """Announce a process. How many did so within the last so many seconds, itself included."""

    async def arun(
        self, operation: Operation, group: Group, costs: Sequence[int], now: int | None = None
    ) -> Answer:
        """See run(). May have to wait for a thread."""

        def run() -> Answer:
            self.before()
            return self.run(operation, group, costs, now)

        return await sync_to_async(run, thread_sensitive=self.thread_sensitive)()

    def before(self) -> None:  # noqa: B027 (an unguarded store has nothing to look at)
        """Called once there is a thread for arun(). A guard's may raise StoreUnavailable."""

    async def aversions(self, keys: Sequence[str]) -> tuple[str, ...]:
        """See versions()."""
        versions = sync_to_async(self.versions, thread_sensitive=self.thread_sensitive)
        return await versions(keys)

    async def areset(self, group: Group, subjects: Sequence[str] = ()) -> None:
        """See reset()."""
        reset = sync_to_async(self.reset, thread_sensitive=self.thread_sensitive)
        await reset(group, subjects)
