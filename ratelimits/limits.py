"""Values that travel: a limit, what one take made of it, and the decision over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from .algorithms import Terms
from .algorithms.base import ceil_div
from .rates import Rate

SECOND = 1_000_000
# How soon to ask again while the whole service is closed by a limit of 0.
CLOSED = 60 * SECOND


T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 (it stands where `property` does)
    """A property that is found once for each value, without the lock of cached_property.

    Up to Python 3.11 that lock takes longer than what is found here.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self.find = find
        self.__doc__ = find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, value: Any, owner: type | None = None) -> T:
        found = value.__dict__[self.name] = self.find(value)
        return found


@dataclass(frozen=True)
class Limit:
    """One rule, as the counting sees it.

    `per` says whose bucket it is: "tenant" (or whatever stands in for one), "address", or
    "everyone". `ident` is what its state is found by; by default its name. A `burst` of
    None is the rate's quota.
    """

    name: str
    rate: Rate
    burst: int | None = None
    scope: str = ""
    algorithm: str = "token_bucket"
    mode: str = "enforce"
    on_store_failure: str = ""
    per: str = "tenant"
    ident: str = ""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Of what tells most limits apart; each response looks its policies up by it."""
        return hash((self.name, self.rate, self.scope, self.ident))

    @property
    def quota(self) -> int:
        """Units per window. Raises ValueError for an unlimited rate."""
        if self.rate.quota is None:
            raise ValueError(f'The limit "{self.name}" is unlimited and has no quota.')
        return self.rate.quota

    @property
    def capacity(self) -> int:
        """The most that can ever be taken at once."""
        if self.algorithm != "token_bucket" or self.burst is None or self.quota == 0:
            return self.quota
        return self.burst

    @property
    def is_shadow(self) -> bool:
        return self.mode == "shadow"

    @property
    def is_published(self) -> bool:
        """Whether callers are told of it: not in shadow, nor the breaker for everyone."""
        return not self.is_shadow and self.per != "everyone"

    @cached_property
    def terms(self) -> Terms:
        return Terms(self.quota, self.capacity, self.rate.window * SECOND)


class Owner(NamedTuple):
    """Who asks, as people know them.

    `kind` says what `key` is: a "tenant", an "address", or "by", which is only what a limit
    written in code counts by: what it is counted by may be secret.
    """

    kind: str
    key: str


class Outcome(NamedTuple):
    """What one take made of one limit. Times are in microseconds.

    `reset_us` is what the field `t` rounds up: until the next unit of a violated limit, the
    end of a window, or else long enough that remaining / reset stays within the rate.
    `wait_us` is 0 if the cost fits, None if it never will.
    """

    limit: Limit
    allowed: bool
    remaining: int
    reset_us: int
    wait_us: int | None
    cost: int

    @property
    def name(self) -> str:
        return self.limit.name

    @property
    def reset(self) -> timedelta:
        return timedelta(microseconds=self.reset_us)

    @property
    def reset_seconds(self) -> int:
        return ceil_div(self.reset_us, SECOND)

    @property
    def wait(self) -> timedelta | None:
        """Until the cost would fit; None if it fits, or never will."""
        return timedelta(microseconds=self.wait_us) if self.wait_us else None

    @property
    def never(self) -> bool:
        return self.wait_us is None

    @property
    def refuses(self) -> bool:
        return not self.allowed and not self.limit.is_shadow


class Occasion(NamedTuple):
    """What a refused take was about. `local`: the process itself decided.

    `tenant` is None for a caller without one, `address` empty if there was no request.
    """

    tenant: str | None = None
    address: str = ""
    scope: str = ""
    path: str = ""
    local: bool = False


@dataclass(frozen=True, init=False)
class Decision:
    """The answer to one take.

    `unavailable` is true if the store could not be asked and the take was refused for that.
    `spread`, from 0 to 1, is how far this caller's Retry-After of a 503 lies behind the
    moment that all callers wait for. `occasion` is what the receipt of a refusal tells.
    """

    outcomes: tuple[Outcome, ...] = ()
    cost: int = 1
    unavailable: bool = False
    spread: float = 0.0
    occasion: Occasion | None = field(default=None, compare=False, repr=False)

    def __init__(
        self,
        outcomes: tuple[Outcome, ...] = (),
        cost: int = 1,
        unavailable: bool = False,
        spread: float = 0.0,
        occasion: Occasion | None = None,
    ) -> None:
        # What the dataclass would do takes three times as long, and each request pays for it.
        own = self.__dict__
        own["outcomes"], own["cost"], own["occasion"] = outcomes, cost, occasion
        own["unavailable"], own["spread"] = unavailable, spread

    @once
    def violated(self) -> tuple[Outcome, ...]:
        return tuple([outcome for outcome in self.outcomes if outcome.refuses])

    @once
    def allowed(self) -> bool:
        # Not by way of `violated`, nor of a generator, since each response asks.
        fine = [outcome.allowed or not outcome.refuses for outcome in self.outcomes]
        return not self.unavailable and all(fine)

    @once
    def deciding(self) -> Outcome | None:
        """The violated limit that is waited for longest; one of the caller's own first."""
        own = tuple(outcome for outcome in self.violated if outcome.limit.per != "everyone")
        return max(own or self.violated, key=_severity, default=None)

    @once
    def wait_us(self) -> int | None:
        """Microseconds until the same take passes; None if it did, or never will."""
        waits = [outcome.wait_us for outcome in self.violated]
        known = [wait for wait in waits if wait is not None]
        return max(known) if known and len(known) == len(waits) else None

    @property
    def wait(self) -> timedelta | None:
        """Until the same take passes, exactly; None if it was allowed, or never will be."""
        wait = self.wait_us
        return None if wait is None else timedelta(microseconds=wait)

    @property
    def retryable(self) -> bool:
        return self.status == 503 or self.wait_us is not None

    @once
    def status(self) -> int:
        """200; 429 for a limit of the caller's; 503 for everyone's, or a store that is away.

        A cost that is too high for the limit of everyone is the caller's own affair.
        """
        if self.allowed:
            return 200
        own = any(
            outcome.limit.per != "everyone" or (outcome.never and outcome.limit.quota)
            for outcome in self.violated
        )
        return 429 if own else 503

    @once
    def retry_after(self) -> int | None:
        """Whole seconds until the same take passes, rounded up and at least 1, or None.

        A 503 always has one; no two callers get the same, so that they come back one by one.
        """
        wait = self.wait_us
        if self.status == 503:
            wait = wait or (SECOND if self.unavailable else CLOSED)
            wait += int(wait * self.spread)
        return None if wait is None else max(1, ceil_div(wait, SECOND))

    def headers(self) -> Mapping[str, str]:
        """The header fields that publish this decision, by name."""
        return _headers_of()(self)


@cache
def _headers_of() -> Callable[[Decision], dict[str, str]]:
    # What publishes knows of these values, so that they can't import it when they are imported.
    from .publishing.headers import headers_of

    return headers_of


def _severity(outcome: Outcome) -> tuple[bool, int]:
    return outcome.wait_us is None, outcome.wait_us or 0
