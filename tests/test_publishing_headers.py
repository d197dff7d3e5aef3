from __future__ import annotations

import time
from typing import Any

import http_sf
import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from ratelimits.algorithms import token_bucket
from ratelimits.limits import SECOND, Decision, Limit, Outcome
from ratelimits.publishing.fields import MAX_INTEGER, item, printable, string, unique
from ratelimits.publishing.headers import headers_of
from ratelimits.rates import MAX_QUOTA, MAX_WINDOW, Rate
from tests.decisions import decision, limit, passed, violated

TRICKY = 'Größe "L"\n€'


def read(field: str) -> list[tuple[str, dict[str, Any]]]:
    """A field's items, as somebody else's parser understands them."""
    items: Any = http_sf.parse(field.encode("ascii"), tltype="list")
    return list(items)


def policy(*limits: Limit) -> list[tuple[str, dict[str, Any]]]:
    return read(headers_of(decision(*map(passed, limits)))["RateLimit-Policy"])


def budget(*outcomes: Outcome) -> list[tuple[str, dict[str, Any]]]:
    return read(headers_of(decision(*outcomes))["RateLimit"])


def test_fields_of_an_allowed_request() -> None:
    headers = headers_of(decision(passed(limit("burst")), passed(limit("daily", "1000/d"), 999, 9)))
    assert headers == {
        "RateLimit-Policy": '"burst";q=100;w=60, "daily";q=1000;w=86400',
        "RateLimit": '"burst";r=50;t=30, "daily";r=999;t=9',
        "RateLimit-Limit": "100",
        "RateLimit-Remaining": "50",
        "RateLimit-Reset": "30",
    }
    assert decision(passed(limit("burst"))).headers()["RateLimit"] == '"burst";r=50;t=30'


@pytest.mark.parametrize(
    "hidden",
    [
        decision(),
        decision(passed(limit(mode="shadow"))),
        decision(passed(limit(per="everyone"))),
        decision(passed(limit(rate="unlimited", mode="enforce"))),
    ],
)
def test_nothing_to_publish_is_no_field(hidden: Decision) -> None:
    """S-01, S-35: an empty list can't be sent; the field is left out."""
    assert headers_of(hidden) == {}


def test_only_what_is_published_is_listed() -> None:
    """S-22: what the service as a whole can take is not told."""
    outcomes = [
        violated(limit("trial", mode="shadow"), 9),
        passed(limit("mine")),
        passed(limit("breaker", "5/s", per="everyone"), 0),
        passed(limit("spare", "unlimited")),
        passed(limit("address", "7/m", per="address"), 6),
    ]
    headers = headers_of(decision(*outcomes))
    assert [name for name, _ in read(headers["RateLimit-Policy"])] == ["mine", "address"]
    assert [name for name, _ in read(headers["RateLimit"])] == ["mine", "address"]
    assert headers["RateLimit-Limit"] == "100"
    assert "Retry-After" not in headers


def test_names_are_strings() -> None:
    """S-02: quotes and backslashes are escaped, and come back."""
    field = headers_of(decision(passed(limit(r'a"b\c'))))["RateLimit-Policy"]
    assert field == r'"a\"b\\c";q=100;w=60'
    assert read(field)[0][0] == r'a"b\c'


def test_quota_is_a_non_negative_integer() -> None:
    """S-03: also for a quota of zero and the largest one."""
    quotas = [policy(limit(rate=f"{quota}/m"))[0][1]["q"] for quota in (0, 1, MAX_QUOTA)]
    assert quotas == [0, 1, MAX_QUOTA]


def test_parameters_are_those_of_the_draft() -> None:
    """S-04, S-06, S-25, S-26: the unit is the default one, and no partition key is told."""
    assert set(policy(limit())[0][1]) == {"q", "w"}
    assert set(budget(passed(limit()))[0][1]) == {"r", "t"}


@pytest.mark.parametrize(
    ("rate", "window"), [("10/s", 1), ("10/5m", 300), ("10/366d", MAX_WINDOW), ("10/month", None)]
)
def test_window_in_whole_seconds(rate: str, window: int | None) -> None:
    """S-05: at least 1, and left out for a calendar month, which has no fixed length."""
    assert policy(limit(rate=rate, algorithm="fixed_window"))[0][1].get("w") == window


@pytest.mark.parametrize(("remaining", "shown"), [(-3, 0), (0, 0), (7, 7), (10**16, MAX_INTEGER)])
def test_remaining_is_never_negative(remaining: int, shown: int) -> None:
    """S-07: an Integer of at most fifteen digits, clamped."""
    headers = headers_of(decision(passed(limit(), remaining)))
    assert read(headers["RateLimit"])[0][1]["r"] == shown
    assert headers["RateLimit-Remaining"] == str(shown)


@pytest.mark.parametrize(
    ("reset_us", "shown"), [(0, 0), (1, 1), (SECOND, 1), (SECOND + 1, 2), (10**23, MAX_INTEGER)]
)
def test_reset_is_rounded_up(reset_us: int, shown: int) -> None:
    """S-08: in whole seconds, never early."""
    headers = headers_of(decision(Outcome(limit(), True, 5, reset_us, 0, 1)))
    assert read(headers["RateLimit"])[0][1]["t"] == shown
    assert headers["RateLimit-Reset"] == str(shown)


def test_burst_is_a_parameter_with_a_prefix() -> None:
    """S-10: only if it differs from the quota, and never for a quota of zero."""
    assert policy(limit(burst=20))[0][1] == {"q": 100, "w": 60, "ratelimits-burst": 20}
    assert "ratelimits-burst" not in policy(limit(burst=100))[0][1]
    assert "ratelimits-burst" not in policy(limit(burst=20, algorithm="fixed_window"))[0][1]
    assert "ratelimits-burst" not in policy(limit(rate="0/m", burst=20))[0][1]


def test_policy_is_the_same_on_each_response() -> None:
    """S-11: whatever is left, refused or not, and for limits that are read again."""
    first = headers_of(decision(passed(limit("a")), passed(limit("b", burst=5))))
    then = headers_of(decision(violated(limit("a")), passed(limit("b", burst=5), 1)))
    assert first["RateLimit-Policy"] == then["RateLimit-Policy"]
    assert first["RateLimit"] != then["RateLimit"]


def test_an_edited_limit_has_another_policy() -> None:
    assert policy(limit(rate="100/m")) != policy(limit(rate="200/m"))


def test_names_are_unique_in_any_case() -> None:
    """S-12: also after a suffix that somebody else has."""
    names = [name for name, _ in policy(*map(limit, ["a-2", "a", "A", "é", "e"]))]
    assert names == ["a-2", "a", "A-3", "e", "e-2"]


def test_hidden_limits_do_not_rename_listed_ones() -> None:
    """S-11: a limit tried in shadow changes nothing that callers see."""
    outcomes = [passed(limit("a", mode="shadow")), passed(limit("a"))]
    assert budget(*outcomes)[0][0] == "a"


def test_both_fields_use_the_same_names() -> None:
    """S-13."""
    outcomes = [passed(limit(name)) for name in (TRICKY, "b", "B", "日本", "中国")]
    headers = headers_of(decision(*outcomes))
    names = [[name for name, _ in read(headers[f])] for f in ("RateLimit-Policy", "RateLimit")]
    assert names[0] == names[1]
    assert len({name.lower() for name in names[0]}) == 5


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (TRICKY, 'Gro-e "L"'),
        ("daily", "daily"),
        ("Crème brûlée", "Creme brulee"),
        ("café\r\nX-Evil: 1", "cafe-X-Evil: 1"),
        ("日本", "limit"),
        ("", "limit"),
        ("a\x7fb", "a-b"),
        ("x" * 5000, "x" * 128),
    ],
)
def test_any_name_gives_a_valid_field(name: str, shown: str) -> None:
    """Case 57: printable ASCII, and the same each time."""
    assert policy(limit(name))[0][0] == shown


def test_what_a_string_cannot_hold_is_refused() -> None:
    """S-02: RFC 9651, section 4.1.6 has no way to write it."""
    with pytest.raises(ValueError, match="can't hold"):
        string("é")


@pytest.mark.parametrize("number", [0, 7, MAX_INTEGER, MAX_INTEGER + 1, -1])
def test_items_hold_fifteen_digits(number: int) -> None:
    """S-03: more would make every parser drop the whole field."""
    shown = read(item('"a"', {"q": number}))[0][1]["q"]
    assert shown == max(0, min(number, MAX_INTEGER))


def test_retry_after_is_for_refusals() -> None:
    assert "Retry-After" not in headers_of(decision(passed(limit(), 0)))
    assert headers_of(decision(violated(limit(), 0.000_001)))["Retry-After"] == "1"
    assert headers_of(decision(violated(limit(), 1.5)))["Retry-After"] == "2"


def test_no_retry_after_if_waiting_does_not_help() -> None:
    """S-31: a cost above the burst can't pass, nor anything on a quota of zero."""
    headers = headers_of(decision(violated(limit(), None, remaining=100, cost=101)))
    assert "Retry-After" not in headers
    assert read(headers["RateLimit"])[0][1]["r"] == 100


def test_unavailable_store_still_says_when_to_come_back() -> None:
    assert headers_of(decision(unavailable=True)) == {"Retry-After": "1"}


def test_retry_after_of_a_503_is_spread() -> None:
    """S-28: callers come back at different moments, none of them earlier."""
    everyone = violated(limit(per="everyone"), 10)
    waits = [
        int(headers_of(decision(everyone, spread=spread))["Retry-After"]) for spread in (0, 0.5, 1)
    ]
    assert waits == [10, 15, 20]


def reading_of(rate: str, calls: list[float]) -> Decision:
    """The decision on the last of some calls, with the real token bucket."""
    of = limit(rate=rate)
    state = None
    for second in calls:
        now = int(second * SECOND)
        state = token_bucket.settle(state, of.terms, now)
        if token_bucket.fits(state, of.terms, 1, now):
            state = token_bucket.add(state, of.terms, 1, now)
            reading = token_bucket.read(state, of.terms, 0, now)
        else:
            reading = token_bucket.read(state, of.terms, 1, now)
    refused = bool(reading.wait)
    return decision(Outcome(of, not refused, reading.remaining, reading.next or 0, reading.wait, 1))


@pytest.mark.parametrize(
    ("rate", "calls", "wait"), [("6/6s", [0] * 7, 1), ("2/m", [0, 10, 20], 10)]
)
def test_reset_is_the_next_unit_and_not_a_full_bucket(
    rate: str, calls: list[float], wait: int
) -> None:
    """Case 48 and S-21: t and Retry-After are one number."""
    headers = headers_of(reading_of(rate, calls))
    assert read(headers["RateLimit"]) == [("default", {"r": 0, "t": wait})]
    assert headers["Retry-After"] == headers["RateLimit-Reset"] == str(wait)


def test_twenty_more_tries_leave_zero() -> None:
    """Case 50 and S-07."""
    headers = headers_of(reading_of("10/m", [0] * 31))
    assert read(headers["RateLimit"])[0][1]["r"] == 0
    assert headers["RateLimit-Remaining"] == "0"


@pytest.mark.parametrize(
    ("outcomes", "closest"),
    [
        ([passed(limit(rate="10/m"), 5), passed(limit(rate="1000/m"), 6)], "1000"),
        ([passed(limit(rate="10/m"), 0), violated(limit(rate="20/m"), 1, remaining=3)], "20"),
        ([violated(limit(rate="10/m"), 1), violated(limit(rate="20/m"), 2)], "20"),
        ([violated(limit(rate="10/m"), 9), violated(limit(rate="20/m"), None)], "20"),
        ([passed(limit(rate="10/m"), 5, 1), passed(limit(rate="20/m"), 10, 2)], "20"),
        ([passed(limit(rate="10/m"), 1), passed(limit(rate="0/m"), 0, cost=0)], "0"),
        ([passed(limit(rate="10/m"), 5), violated(limit(rate="20/m", per="everyone"))], "10"),
    ],
)
def test_trio_describes_the_limit_closest_to_exhaustion(
    outcomes: list[Outcome], closest: str
) -> None:
    assert headers_of(decision(*outcomes))["RateLimit-Limit"] == closest
    assert headers_of(decision(*reversed(outcomes)))["RateLimit-Limit"] == closest


def test_trio_never_has_more_left_than_its_limit() -> None:
    headers = headers_of(decision(passed(limit(rate="10/s", burst=40), 39)))
    assert (headers["RateLimit-Limit"], headers["RateLimit-Remaining"]) == ("40", "39")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["ratelimit"], {"RateLimit-Policy", "RateLimit"}),
        (["ratelimit-legacy"], {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}),
        (
            ("x-ratelimit",),
            {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"},
        ),
        ([], set()),
        ("ratelimit", {"RateLimit-Policy", "RateLimit"}),
        ("ratelimit-legacy", {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}),
    ],
)
def test_setting_chooses_the_fields(settings, wanted: list[str], expected: set[str]) -> None:
    """S-35. A refusal's Retry-After is not up for choice."""
    settings.RATELIMITS = {"HEADERS": wanted}
    assert set(headers_of(decision(passed(limit())))) == expected
    assert set(headers_of(decision(violated(limit())))) == expected | {"Retry-After"}


@freeze_time("2026-11-30 12:00:00.400")
@pytest.mark.parametrize(("reset", "later"), [(0, 1), (0.6, 1), (0.600_001, 2), (30, 31)])
def test_reset_of_the_x_fields_is_an_epoch_second(settings, reset: float, later: int) -> None:
    settings.RATELIMITS = {"HEADERS": ["x-ratelimit"]}
    headers = headers_of(decision(passed(limit(), 50, reset)))
    assert headers["X-RateLimit-Reset"] == str(int(time.time()) + later)


limits = st.builds(
    Limit,
    name=st.text(max_size=20),
    rate=st.builds(Rate, st.integers(0, MAX_QUOTA), st.integers(1, MAX_WINDOW)),
    burst=st.none() | st.integers(1, MAX_QUOTA),
    per=st.sampled_from(["tenant", "address", "everyone"]),
    mode=st.sampled_from(["enforce", "shadow"]),
)


@st.composite
def outcomes(draw) -> Outcome:
    """What the limiter may say: r / reset within the rate, or refused until the next unit."""
    of = draw(limits)
    remaining = draw(st.integers(0, of.capacity))
    longer = draw(st.integers(0, 10**9))
    if draw(st.booleans()):
        least = -(-remaining * of.terms.window // of.quota) if of.quota else 0
        return Outcome(of, True, remaining, least + longer, 0, 1)
    wait = draw(st.none() | st.integers(1, 10**12))
    return Outcome(of, False, remaining, min(longer, wait or 0), wait, remaining + 1)


@given(st.lists(outcomes(), max_size=6))
def test_fields_always_parse_and_never_promise_too_much(made: list[Outcome]) -> None:
    """S-01 to S-08, S-12, S-13, S-21 to S-23, over whatever operators and time bring."""
    headers = headers_of(Decision(tuple(made)))
    listed = [outcome for outcome in made if outcome.limit.is_published]
    assert ("RateLimit" in headers) == ("RateLimit-Policy" in headers) == bool(listed)
    policies = read(headers.get("RateLimit-Policy", ""))
    budgets = read(headers.get("RateLimit", ""))
    assert [name for name, _ in policies] == [name for name, _ in budgets]
    assert len({name.lower() for name, _ in policies}) == len(listed)
    for outcome, (_, terms), (_, left) in zip(listed, policies, budgets, strict=True):
        assert (terms["q"], terms["w"]) == (outcome.limit.quota, outcome.limit.rate.window)
        assert left["r"] == outcome.remaining
        assert 0 <= left["t"] <= MAX_INTEGER
        if outcome.allowed and left["t"] < MAX_INTEGER and terms["q"]:
            assert left["r"] * terms["w"] <= terms["q"] * left["t"]
        if outcome.refuses and "Retry-After" in headers:
            assert left["t"] <= int(headers["Retry-After"])


@given(st.lists(st.text()))
def test_names_are_printable_unique_and_stable(texts: list[str]) -> None:
    """S-02, S-12."""
    names = unique(map(printable, texts))
    assert names == unique(map(printable, texts))
    assert all(name and name.isascii() and name.isprintable() for name in names)
    assert len({name.lower() for name in names}) == len(texts)
