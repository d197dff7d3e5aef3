from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ratelimits.describing import UNITS
from ratelimits.rates import MAX_QUOTA, MAX_WINDOW, Rate

MINUTE, HOUR, DAY, WEEK = 60, 3600, 86400, 604800


@pytest.mark.parametrize(
    ("text", "quota", "window"),
    [
        ("10/s", 10, 1),
        ("100/m", 100, MINUTE),
        ("1000/h", 1000, HOUR),
        ("5000/d", 5000, DAY),
        ("2/w", 2, WEEK),
        ("10/5m", 10, 5 * MINUTE),
        ("1/20s", 1, 20),
        ("100/36h", 100, 36 * HOUR),
        ("10/min", 10, MINUTE),
        ("10/minute", 10, MINUTE),
        ("10/5minutes", 10, 5 * MINUTE),
        ("10/5 minutes", 10, 5 * MINUTE),
        ("10/sec", 10, 1),
        ("10/second", 10, 1),
        ("10/30seconds", 10, 30),
        ("10/hr", 10, HOUR),
        ("10/hour", 10, HOUR),
        ("10/day", 10, DAY),
        ("10/2days", 10, 2 * DAY),
        ("10/week", 10, WEEK),
        ("100 per hour", 100, HOUR),
        ("100 per 5 minutes", 100, 5 * MINUTE),
        ("10 / m", 10, MINUTE),
        ("  10/m\n", 10, MINUTE),
        ("10/\tm", 10, MINUTE),
        ("007/m", 7, MINUTE),
        ("10/05m", 10, 5 * MINUTE),
        ("0/m", 0, MINUTE),
        ("1/1s", 1, 1),
        ("1/366d", 1, 366 * DAY),
        ("1/52w", 1, 52 * WEEK),
        (f"{MAX_QUOTA}/s", MAX_QUOTA, 1),
    ],
)
def test_parse(text: str, quota: int, window: int) -> None:
    rate = Rate.parse(text)
    assert (rate.quota, rate.window) == (quota, window)
    assert not rate.is_unlimited and not rate.is_month
    assert str(rate) == " ".join(text.split())
    assert Rate.parse(str(rate)) == rate
    assert Rate.parse(rate.canonical()) == rate


@pytest.mark.parametrize(
    "text", ["100000/month", "100000/months", "100000 per month", "100000/1month"]
)
def test_month(text: str) -> None:
    rate = Rate.parse(text)
    assert rate.is_month and not rate.is_unlimited
    assert (rate.quota, rate.window) == (100_000, 0)
    assert str(rate) == text
    assert rate.canonical() == "100000/month"


def test_unlimited() -> None:
    rate = Rate.parse(" unlimited ")
    assert rate.is_unlimited and not rate.is_month
    assert rate.quota is None
    assert str(rate) == rate.canonical() == rate.describe() == "unlimited"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "10",
        "10/",
        "/m",
        "m",
        "ten/m",
        "10/m/m",
        "-1/m",
        "+1/m",
        "1e9/s",
        "1.5/s",
        "1_000/s",
        "1,000/s",
        "10/0s",
        "10/0m",
        "10/-5m",
        "10/1.5m",
        "10/y",
        "10/year",
        "10/M",
        "10/ms",
        "10/mm",
        "10//m",
        "10 m",
        "10 perm",
        "10per m",
        "10 per",
        "10/2months",
        "10/367d",
        "10/53w",
        "1/99999999999999s",
        f"{MAX_QUOTA + 1}/s",
        "9" * 400 + "/s",
        "10/m; drop",
        "10/m extra",
        "none",
        "None",
        "Unlimited!",
        "unlimited/m",
        "inf/s",
        "nan/s",
        "\u0661\u0660/m",
        "\uff11\uff10/m",
        "10/m\0",
    ],
)
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        Rate.parse(text)
    message = str(caught.value)
    assert f'"{text[:60]}' in message
    assert '"100/m"' in message and '"10/5m"' in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("10/0s", "the period is zero"),
        ("10/fortnight", '"fortnight" is no period'),
        ("10/2months", "write 30d for thirty days"),
        ("10/367d", "above 366 days"),
        (f"{MAX_QUOTA + 1}/s", f"above {MAX_QUOTA}"),
        ("ten/m", "a number, a slash and a period"),
    ],
)
def test_the_message_says_why(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Rate.parse(text)


def test_examples_in_messages_are_rates() -> None:
    assert Rate.parse("100/m").window == MINUTE
    assert Rate.parse("10/5m").window == 5 * MINUTE


@pytest.mark.parametrize(
    ("quota", "window"),
    [(-1, 1), (MAX_QUOTA + 1, 1), (1, -1), (1, MAX_WINDOW + 1)],
)
def test_what_can_not_be_made(quota: int, window: int) -> None:
    with pytest.raises(ValueError, match=str(quota) if window == 1 else "window"):
        Rate(quota, window)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("60/m", "60 per minute"),
        ("10/5m", "10/300s"),
        ("10/w", "10/7d"),
        ("10/d", "10/24h"),
        ("unlimited", " unlimited"),
    ],
)
def test_equal_if_they_allow_the_same(one: str, other: str) -> None:
    assert Rate.parse(one) == Rate.parse(other)
    assert hash(Rate.parse(one)) == hash(Rate.parse(other))
    assert Rate.parse(one).canonical() == Rate.parse(other).canonical()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # The same on average, but another burst.
        ("1/s", "60/m"),
        ("0/m", "unlimited"),
        ("10/month", "10/30d"),
        ("10/m", "11/m"),
    ],
)
def test_not_equal(one: str, other: str) -> None:
    assert Rate.parse(one) != Rate.parse(other)


@pytest.mark.parametrize(
    ("text", "canonical", "words"),
    [
        ("1/s", "1/s", "1 request per second"),
        ("100/m", "100/m", "100 requests per minute"),
        ("100/300s", "100/5m", "100 requests per 5 minutes"),
        ("100/90m", "100/90m", "100 requests per 90 minutes"),
        ("100/36h", "100/36h", "100 requests per 36 hours"),
        ("100/48h", "100/2d", "100 requests per 2 days"),
        ("1/7d", "1/w", "1 request per week"),
        ("5/30d", "5/30d", "5 requests per 30 days"),
        ("0/m", "0/m", "0 requests per minute"),
        ("2/month", "2/month", "2 requests per calendar month"),
    ],
)
def test_words(text: str, canonical: str, words: str) -> None:
    assert Rate.parse(text).canonical() == canonical
    assert Rate.parse(text).describe() == words


def test_a_rate_made_of_numbers_has_a_text() -> None:
    assert str(Rate(10, 300)) == "10/5m"
    assert str(Rate(None)) == "unlimited"
    assert str(Rate(10, 0)) == "10/month"


def test_a_rate_can_be_parsed_again() -> None:
    rate = Rate.parse("10/5m")
    assert Rate.parse(rate) == rate  # type: ignore[arg-type]


def test_a_rate_does_not_change() -> None:
    rate = Rate.parse("10/5m")
    with pytest.raises(AttributeError):
        rate.quota = 11  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(rate)) == rate


@settings(deadline=None)
@given(st.integers(0, MAX_QUOTA), st.integers(1, MAX_WINDOW))
def test_every_rate_can_be_written_and_read(quota: int, window: int) -> None:
    rate = Rate(quota, window)
    read = Rate.parse(str(rate))
    assert (read.quota, read.window) == (quota, window)


@settings(deadline=None)
@given(st.integers(0, MAX_QUOTA), st.integers(1, 400), st.sampled_from(sorted(UNITS)))
def test_every_count_of_units(quota: int, count: int, unit: str) -> None:
    text = f"{quota}/{count}{unit}"
    if count * UNITS[unit] > MAX_WINDOW:
        with pytest.raises(ValueError, match="above 366 days"):
            Rate.parse(text)
    else:
        assert Rate.parse(text) == Rate(quota, count * UNITS[unit])
        assert str(Rate.parse(text)) == text


@settings(deadline=None)
@given(st.text() | st.from_regex(r"[0-9a-z/ .+-]{0,12}", fullmatch=True))
def test_any_other_text_is_a_value_error(text: str) -> None:
    try:
        rate = Rate.parse(text)
    except ValueError as error:
        assert text[:60] in str(error)
    else:
        assert Rate.parse(rate.canonical()) == rate
