"""A replay refuses what live traffic would have been refused, and nothing else."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from ratelimits.algorithms import ALGORITHMS, Ask, Operation, Terms, run
from ratelimits.limiter import take
from ratelimits.limits import Limit
from ratelimits.models import Plan
from ratelimits.rates import Rate
from ratelimits.replay.calls import Calls
from ratelimits.replay.counting import refusals, refuses_none
from ratelimits.replay.paths import Kind
from ratelimits.replay.sliding_log import SlidingLog
from tests.commands import run as command
from tests.conformance.test_vectors import histories, limits_of
from tests.fresh import PATIENT

START = datetime(2026, 11, 30, 23, 59, 58, tzinfo=timezone.utc)
KINDS = [Kind("", 1), Kind("search", 1), Kind("search", 3), Kind("other", 2), Kind("", 0)]
# How the log of live() is read.
OPTIONS = (
    *("--format", '$msec $key "$request" $status $units', "--tenant", "key"),
    *("--cost-field", "units", "--scope", "search=/api/search", "--scope", "other=/api/other"),
)
PLANS: dict[str, list[dict[str, Any]]] = {
    "token_bucket": [{"rate": "10/s", "burst": 4}, {"rate": "7/13s", "scope": "search"}],
    "fixed_window": [{"rate": "8/2s"}, {"rate": "60/month"}, {"rate": "3/s", "scope": "search"}],
    "sliding_log": [{"rate": "9/2s"}, {"rate": "5/3s", "scope": "search"}],
    "sliding_counter": [{"rate": "9/2s"}, {"rate": "5/3s", "scope": "search"}],
}


def history(seed: int, count: int) -> list[tuple[int, int]]:
    """Calls as they come, in bursts and with pauses: microseconds after the start, and a kind."""
    chance, at, found = random.Random(seed), 0, []
    for _ in range(count):
        pauses = [0, 1, 1000, 70_000, chance.randrange(400_000), 1_000_000, 3_000_000]
        at += chance.choices(pauses, [3, 1, 3, 6, 6, 1, 0.3])[0]
        found.append((at, chance.randrange(len(KINDS))))
    return found


def live(seed: int) -> list[tuple[str, list[str]]]:
    """Lines of a log of what came while the clock went on, each with the limits that refused it."""
    found = []
    with freeze_time(START) as frozen:
        for after, number in history(seed, 250):
            at = START + timedelta(microseconds=after)
            frozen.move_to(at)
            scope, cost = KINDS[number]
            decision = take("acme", scope=scope, cost=cost)
            status = 200 if decision.allowed else 429
            second = at.replace(microsecond=0).timestamp()
            time = f"{second:.0f}.{at.microsecond:06}"
            line = f'{time} acme "POST /api/{scope}?x=1 HTTP/1.1" {status} {cost}\n'
            found.append((line, [outcome.name for outcome in decision.violated]))
    return found


@pytest.mark.django_db
@pytest.mark.parametrize("algorithm", PLANS)
@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_each_algorithm(
    algorithm: str, mode: str, settings: Any, fresh: None, tmp_path: Path
) -> None:
    settings.RATELIMITS = PATIENT
    plan = Plan.objects.create(slug="pro", is_default=True)
    for number, said in enumerate(PLANS[algorithm]):
        # One in shadow takes its part without a say.
        own = mode if number == 0 else "enforce"
        plan.limits.create(name=f"{number}", algorithm=algorithm, mode=own, **said)
    lived = live(seed=len(algorithm))
    log = tmp_path / "access.log"
    log.write_text("".join(line for line, _ in lived))
    ended = command("ratelimits_replay", str(log), "--plan", "pro", "--json", *OPTIONS)
    assert ended.code == 0, ended.err
    (found,) = json.loads(ended.out)["tenants"]
    refused = [(line, names) for line, names in lived if names]
    times = [datetime.fromtimestamp(int(line[:10]), timezone.utc) for line, _ in refused]
    assert len(refused) > 20
    assert found["refused"] == len(refused)
    assert found["by_limit"] == Counter(name for _, names in refused for name in names)
    assert found["by_minute"] == Counter(f"{at:%Y-%m-%d %H:%M}:00" for at in times)
    assert found["first"].startswith(f"{times[0]:%Y-%m-%dT%H:%M:%S}.{refused[0][0][11:17]}")
    assert found["last"].startswith(f"{times[-1]:%Y-%m-%dT%H:%M:%S}.{refused[-1][0][11:17]}")
    assert bool(found["would_refuse"]) == (mode == "shadow")
    assert found["smallest_plan"] is None


def test_histories_with_known_answers() -> None:
    """Those of tests/vectors, as far as they are calls in the order of time."""
    right = count = 0
    for described in histories():
        calls, refused = Calls(), 0
        kinds: list[Kind] = []
        for step in described["steps"]:
            if step["op"] == "peek":
                continue
            if step["op"] != "take" or step["at_us"] < calls.latest:
                break
            calls.latest = step["at_us"]
            calls.times.append(step["at_us"])
            calls.kinds.append(len(kinds))
            kinds.append(Kind("", step["cost"]))
            refused += not step["expect"]["allowed"]
        assert refusals(limits_of(described["limits"]), kinds, calls).count == refused
        right, count = right + refused, count + len(calls)
    assert (count, right) == (1678, 670)


CALLS = st.lists(st.tuples(st.integers(0, 3_000_000), st.sampled_from(range(5))), max_size=40)
LIMITS = st.builds(
    Limit,
    name=st.uuids().map(str),
    rate=st.builds(Rate, st.integers(0, 12), st.integers(1, 5)),
    burst=st.none() | st.integers(1, 8),
    scope=st.sampled_from(["", "search", "nowhere"]),
    algorithm=st.sampled_from(list(ALGORITHMS)),
    mode=st.sampled_from(["enforce", "shadow"]),
)


@given(st.lists(LIMITS, max_size=3), CALLS)
def test_no_shortcut_changes_an_answer(limits: Sequence[Limit], steps: Sequence[Any]) -> None:
    """Call by call with all limits of the plan, on the algorithms themselves."""
    calls, now, right, shadowed = Calls(), 10**15, [], 0
    states: dict[str, Any] = {}
    for pause, number in steps:
        now += pause
        calls.times.append(now)
        calls.kinds.append(number)
        scope, cost = KINDS[number]
        asked = [limit for limit in limits if limit.scope in ("", scope)]
        asks = [Ask(ALGORITHMS[x.algorithm], x.terms, cost, not x.is_shadow) for x in asked]
        result = run(Operation.TAKE, asks, [states.get(limit.name) for limit in asked], now)
        states.update(zip([limit.name for limit in asked], result.states, strict=True))
        if not result.allowed:
            right.append(now)
        shadowed += sum(
            limit.is_shadow and not fits for limit, fits in zip(asked, result.fitted, strict=True)
        )
    found = refusals(limits, KINDS, calls)
    assert found.count == len(right)
    assert sorted(found.minutes.elements()) == sorted(at // 60_000_000 * 60_000_000 for at in right)
    assert sum(found.shadowed.values()) == shadowed
    assert refuses_none(limits, KINDS, calls) == (not right)


@given(
    st.integers(0, 8),
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=50),
)
def test_the_sliding_log_without_copies(quota: int, window: int, steps: Any) -> None:
    terms, now, own, real = Terms(quota, quota, window), 10**15, None, None
    quick: Any = SlidingLog()
    pure = ALGORITHMS["sliding_log"]
    for pause, cost in steps:
        now += pause
        own, real = quick.settle(own, terms, now), pure.settle(real, terms, now)
        assert quick.fits(own, terms, cost, now) == pure.fits(real, terms, cost, now)
        own, real = quick.add(own, terms, cost, now), pure.add(real, terms, cost, now)
        assert (own.used, tuple(own.hits)) == (real.used, real.hits)
