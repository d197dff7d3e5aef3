"""While the store is away, all processes together allow no more than the limit."""

from __future__ import annotations

from typing import Any

import pytest
from freezegun import freeze_time

from ratelimits.algorithms import Operation
from ratelimits.limits import Limit
from ratelimits.rates import Rate
from ratelimits.stores.base import Answer, Group, Slot
from ratelimits.stores.guarded import GuardedStore
from ratelimits.stores.missing import MissingStore
from ratelimits.stores.sharing import share_of

ALGORITHMS = ("token_bucket", "fixed_window", "sliding_log", "sliding_counter")


def away() -> GuardedStore:
    """A process whose store is away."""
    return GuardedStore(MissingStore("away"))


def take(store: GuardedStore, limit: Limit, cost: int = 1) -> Answer:
    return store.run(Operation.TAKE, Group((Slot(limit, "caller"),)), [cost])


def admitted(limit: Limit, processes: list[GuardedStore], tries: int) -> int:
    return sum(take(process, limit).allowed for process in processes for _ in range(tries))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("workers", "expected"), [(4, 100), (3, 99), (1, 100), (None, 400)])
def test_together(algorithm: str, workers: int | None, expected: int, settings: Any) -> None:
    settings.RATELIMITS = {"WORKERS": workers}
    limit = Limit("n", Rate.parse("100/h"), algorithm=algorithm)
    processes = [away() for _ in range(4 if workers is None else workers)]
    with freeze_time("2026-07-01T12:00:00Z"):
        assert admitted(limit, processes, 150) == expected


def test_what_flows_in_is_shared_too(settings: Any) -> None:
    """10 per minute by four: 2 at once, and one each 24 seconds."""
    settings.RATELIMITS = {"WORKERS": 4}
    limit, process = Limit("n", Rate.parse("10/m")), away()
    with freeze_time("2026-07-01T12:00:00Z") as clock:
        assert admitted(limit, [process], 5) == 2
        clock.tick(23)
        assert not take(process, limit).allowed
        clock.tick(1)
        assert take(process, limit).allowed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_everybody_has_something_unless_there_is_nothing(algorithm: str) -> None:
    def shared(rate: str) -> Limit:
        return share_of(Slot(Limit("n", Rate.parse(rate), algorithm=algorithm), "c"), 500).limit

    assert shared("3/d").capacity == 1
    assert shared("0/d").capacity == 0


@pytest.mark.parametrize("rate", ["7/366d", "900/366d"])
def test_windows_that_can_grow_no_longer(rate: str) -> None:
    limit = Limit("n", Rate.parse(rate), burst=7)
    share = share_of(Slot(limit, "c"), 5).limit
    assert share.rate.window == limit.rate.window
    assert share.quota == max(1, limit.quota // 5)
    assert share.capacity == 1
