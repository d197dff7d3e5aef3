from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from datetime import timedelta

import pytest

from ratelimits.limits import CLOSED, SECOND, Decision, Limit, Outcome
from ratelimits.rates import Rate
from tests.decisions import decision, limit, passed, violated

MINUTE = limit("minute", "10/m")
DAY = limit("day", "1000/d")
SHADOW = limit("shadow", "1/m", mode="shadow")
EVERYONE = limit("everyone", "5000/s", per="everyone")
ADDRESS = limit("address", "10/s", per="address")


class TestLimit:
    def test_numbers(self) -> None:
        assert (MINUTE.quota, MINUTE.capacity) == (10, 10)
        assert MINUTE.terms == (10, 10, 60 * SECOND)

    @pytest.mark.parametrize(
        ("rate", "options", "capacity"),
        [
            ("10/m", {}, 10),
            ("10/m", {"burst": 3}, 3),
            ("10/m", {"burst": 50}, 50),
            # A row that was written past the form: only a bucket has a burst.
            ("10/m", {"burst": 50, "algorithm": "fixed_window"}, 10),
            ("10/m", {"burst": 50, "algorithm": "sliding_log"}, 10),
            ("10/m", {"burst": 50, "algorithm": "sliding_counter"}, 10),
            ("0/m", {}, 0),
            # Or else a first burst would pass although nothing is allowed.
            ("0/m", {"burst": 5}, 0),
        ],
    )
    def test_capacity(self, rate: str, options: dict[str, int], capacity: int) -> None:
        own = limit("own", rate, **options)
        assert own.capacity == own.terms.burst == capacity

    def test_unlimited_has_no_quota(self) -> None:
        own = limit("own", "unlimited")
        with pytest.raises(ValueError, match='"own" is unlimited'):
            _ = own.quota
        with pytest.raises(ValueError, match='"own" is unlimited'):
            _ = own.capacity

    def test_month_has_no_length(self) -> None:
        assert limit("own", "10/month", algorithm="fixed_window").terms.window == 0

    @pytest.mark.parametrize(
        ("own", "is_published"),
        [(MINUTE, True), (ADDRESS, True), (SHADOW, False), (EVERYONE, False)],
    )
    def test_is_published(self, own: Limit, is_published: bool) -> None:
        assert own.is_published is is_published

    def test_a_limit_does_not_change(self) -> None:
        with pytest.raises(FrozenInstanceError):
            MINUTE.name = "hour"  # type: ignore[misc]

    def test_equal_limits(self) -> None:
        """What is kept by limit is found by an equal one, also after its terms were read."""
        one, other = limit("minute", "10/m"), limit("minute", "10 per minute")
        assert one.terms == other.terms
        assert one == other and hash(one) == hash(other)
        assert pickle.loads(pickle.dumps(one)) == one
        assert limit("minute", "10/m", burst=3) != one


class TestOutcome:
    def test_passed(self) -> None:
        outcome = passed(MINUTE, remaining=9, reset=30)
        assert (outcome.name, outcome.remaining) == ("minute", 9)
        assert outcome.reset == timedelta(seconds=30)
        assert outcome.wait is None
        assert not outcome.never and not outcome.refuses

    def test_violated(self) -> None:
        outcome = violated(MINUTE, wait=5.25)
        assert outcome.wait == timedelta(seconds=5, milliseconds=250)
        assert outcome.refuses and not outcome.never

    def test_never(self) -> None:
        outcome = violated(MINUTE, wait=None, cost=11)
        assert outcome.wait is None
        assert outcome.refuses and outcome.never

    def test_shadow_never_refuses(self) -> None:
        assert not violated(SHADOW).refuses

    @pytest.mark.parametrize(
        ("microseconds", "seconds"),
        [(0, 0), (1, 1), (SECOND - 1, 1), (SECOND, 1), (SECOND + 1, 2), (59 * SECOND, 59)],
    )
    def test_reset_is_rounded_up(self, microseconds: int, seconds: int) -> None:
        assert Outcome(MINUTE, True, 1, microseconds, 0, 1).reset_seconds == seconds


class TestDecision:
    def test_nothing_applies(self) -> None:
        nothing = Decision()
        assert nothing.allowed and nothing.status == 200
        assert (nothing.wait, nothing.retry_after, nothing.deciding) == (None, None, None)
        assert nothing.headers() == {}

    def test_allowed(self) -> None:
        both = decision(passed(MINUTE), passed(DAY))
        assert both.allowed and both.status == 200
        assert both.violated == () and both.deciding is None
        assert both.wait is None and both.retry_after is None
        assert not both.retryable

    def test_one_limit_refuses(self) -> None:
        one = decision(passed(DAY), violated(MINUTE, wait=5.25))
        assert not one.allowed and one.status == 429 and one.retryable
        assert [outcome.name for outcome in one.violated] == ["minute"]
        assert one.deciding is not None and one.deciding.name == "minute"
        assert one.wait == timedelta(seconds=5.25)
        assert one.retry_after == 6

    def test_the_longest_wait_decides(self) -> None:
        both = decision(violated(MINUTE, wait=6), violated(DAY, wait=86.4))
        assert both.deciding is not None and both.deciding.name == "day"
        assert both.wait == timedelta(seconds=86.4)
        assert both.retry_after == 87

    def test_shadow_changes_nothing(self) -> None:
        allowed = decision(passed(MINUTE), violated(SHADOW, wait=60))
        assert allowed.allowed and allowed.wait is None and allowed.retry_after is None
        refused = decision(violated(MINUTE, wait=6), violated(SHADOW, wait=60))
        assert refused.wait == timedelta(seconds=6)
        assert [outcome.name for outcome in refused.violated] == ["minute"]

    @pytest.mark.parametrize(
        ("microseconds", "seconds"),
        [(1, 1), (600_000, 1), (SECOND, 1), (SECOND + 1, 2), (86400 * SECOND, 86400)],
    )
    def test_retry_after_is_rounded_up(self, microseconds: int, seconds: int) -> None:
        refused = decision(Outcome(MINUTE, False, 0, microseconds, microseconds, 1))
        assert refused.retry_after == seconds
        assert refused.wait == timedelta(microseconds=microseconds)

    def test_never(self) -> None:
        one = decision(violated(MINUTE, wait=None, cost=11), cost=11)
        assert (one.status, one.wait, one.retry_after, one.retryable) == (429, None, None, False)

    @pytest.mark.parametrize("order", [1, -1])
    def test_one_never_is_never(self, order: int) -> None:
        outcomes = [violated(DAY, wait=86.4), violated(MINUTE, wait=None, cost=11)]
        both = decision(*outcomes[::order])
        assert (both.wait, both.retry_after, both.retryable) == (None, None, False)
        assert both.deciding is not None and both.deciding.name == "minute"

    def test_the_limit_for_everyone(self) -> None:
        refused = decision(passed(MINUTE), violated(EVERYONE, wait=0.5))
        assert (refused.status, refused.retry_after, refused.retryable) == (503, 1, True)
        assert refused.deciding is not None and refused.deciding.name == "everyone"

    @pytest.mark.parametrize("order", [1, -1])
    @pytest.mark.parametrize("own", [MINUTE, ADDRESS])
    def test_the_callers_own_limit_comes_first(self, own: Limit, order: int) -> None:
        outcomes = [violated(EVERYONE, wait=9), violated(own, wait=2)]
        both = decision(*outcomes[::order])
        assert both.status == 429
        assert both.deciding is not None and both.deciding.name == own.name
        # It still has to wait for both.
        assert both.wait == timedelta(seconds=9) and both.retry_after == 9

    def test_a_cost_above_the_limit_for_everyone(self) -> None:
        refused = decision(violated(EVERYONE, wait=None, cost=9999), cost=9999)
        assert (refused.status, refused.retry_after, refused.retryable) == (429, None, False)

    def test_closed_for_everyone(self) -> None:
        closed = limit("closed", "0/s", per="everyone")
        refused = decision(violated(closed, wait=None))
        assert (refused.status, refused.retry_after) == (503, CLOSED // SECOND)
        assert refused.retryable and refused.wait is None

    def test_unavailable(self) -> None:
        refused = Decision(unavailable=True)
        assert not refused.allowed
        assert (refused.status, refused.retry_after, refused.retryable) == (503, 1, True)

    @pytest.mark.parametrize(
        ("wait", "spread", "retry_after"),
        [(10, 0.0, 10), (10, 0.5, 15), (10, 0.99, 20), (10, 1.0, 20), (0.5, 0.2, 1)],
    )
    def test_callers_of_a_503_do_not_all_come_back_at_once(
        self, wait: float, spread: float, retry_after: int
    ) -> None:
        refused = decision(violated(EVERYONE, wait=wait), spread=spread)
        assert refused.retry_after == retry_after
        # The promise is about the buckets, and not spread.
        assert refused.wait == timedelta(seconds=wait)

    def test_a_429_is_not_spread(self) -> None:
        assert decision(violated(MINUTE, wait=10), spread=0.9).retry_after == 10

    def test_headers(self) -> None:
        refused = decision(violated(MINUTE, wait=5.25))
        assert refused.headers()["Retry-After"] == "6"
        assert "RateLimit" in refused.headers()
        assert "Retry-After" not in decision(passed(MINUTE)).headers()

    def test_rate_of_zero(self) -> None:
        """Case 16."""
        refused = decision(violated(Limit("closed", Rate(0, 60)), wait=None))
        assert (refused.status, refused.retry_after, refused.retryable) == (429, None, False)
