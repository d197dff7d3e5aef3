"""Fields as servers send them, and as nobody should."""

from __future__ import annotations

import http.client
import math
from email.message import Message
from io import BytesIO
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from ratelimits.client.fields import fields_of
from ratelimits.client.headers import Quota, parse_quota, parse_wait
from ratelimits.client.structured import joined
from ratelimits.client.times import DURATION

# Tuesday, 1 December 2026, noon.
NOW = 1796126400.0
DATE = "Tue, 01 Dec 2026 12:00:00 GMT"
LATER = "Tue, 01 Dec 2026 12:00:30 GMT"


def quota(name: str = "", *numbers: float | None) -> Quota:
    return Quota(name, *numbers)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("120", 120),
        (" 120\t", 120),
        ("0", 0),
        ("2.0", 2),
        ("0.503", 0.503),
        ("007", 7),
        ("86400000", 86400000),
        # Two lines, joined.
        ("2814, 2", 2814),
        ("5, 5", 5),
        # Moments: seconds, milli-, micro- and nanoseconds since the epoch; one that is over.
        ("1796126430", 30),
        ("1796126430500", 30.5),
        ("1796126430000000", 30),
        ("1796126430000000000", 30),
        ("1771404540", 0),
        # The three forms of RFC 9110, section 5.6.7; and others for the same zone.
        (LATER, 30),
        ("Tuesday, 01-Dec-26 12:00:30 GMT", 30),
        ("Tue Dec  1 12:00:30 2026", 30),
        ("Tue, 01 Dec 2026 12:00:30 UTC", 30),
        ("Tue, 01 Dec 2026 12:00:30 -0000", 30),
        ("Tue, 01 Dec 2026 12:00:30 +0000", 30),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0),
        # ISO 8601, with and without seconds and zone.
        ("2026-12-01T12:00:30Z", 30),
        ("2026-12-01T12:01Z", 60),
        ("2026-12-01T13:00:30+01:00", 30),
        ("2026-12-01T12:00:30", 30),
        # Go's durations.
        ("1m0s", 60),
        ("1h30m", 5400),
        ("8.64s", 8.64),
        ("12ms", 0.012),
        # What means nothing.
        ("-1", None),
        ("-5", None),
        ("+5", None),
        ("nan", None),
        ("inf", None),
        ("1e400", None),
        ("1e3", None),
        ("1_000", None),
        ("\u0663", None),
        ("\u00b2", None),
        ("", None),
        ("soon", None),
        ("9" * 5000, None),
        ("9" * 400 + "s", None),
        ("Wed, 32 Oct 2026 12:00:00 GMT", None),
        ("Tue, 01 Dec 2026 12:00:30 EST", None),
        ("2026-13-01T12:00:00Z", None),
        ("5, soon", None),
    ],
)
def test_retry_after(text: str, wait: float | None) -> None:
    told = parse_wait({"Retry-After": text}, NOW)
    assert told == (None if wait is None else pytest.approx(wait, abs=1e-6))


def test_a_two_digit_year_is_never_far_ahead() -> None:
    """RFC 9110, section 5.6.7: more than 50 years ahead means the past."""
    wait = parse_wait({"Retry-After": "Monday, 01-Dec-70 12:00:00 GMT"}, NOW)
    assert wait is not None
    assert wait < 51 * 366 * 86400


@pytest.mark.parametrize("skew", [-3600, 0, 3600])
@pytest.mark.parametrize("text", [LATER, "1796126430", "2026-12-01T12:00:30Z"])
def test_moments_are_read_against_the_servers_clock(text: str, skew: int) -> None:
    assert parse_wait({"Retry-After": text, "Date": DATE}, NOW + skew) == 30
    assert parse_wait({"Retry-After": "30", "Date": DATE}, NOW + skew) == 30


@pytest.mark.parametrize(
    "fields",
    [
        {"Retry-After-Ms": "1796126430000"},
        {"Retry-After-Ms": "1796126430"},
        {"x-ms-retry-after-ms": "1796126430000"},
        {"RateLimit": '"a";r=0;t=1796126430'},
        {"RateLimit": '"a";a=0;w=1796126430'},
        {"RateLimit": "limit=10, remaining=0, reset=1796126430"},
    ],
)
def test_moments_where_seconds_belong(fields: dict[str, str]) -> None:
    """No duration is 56 years long, in whatever field."""
    assert parse_wait({"Date": DATE, **fields}, NOW + 99) == 30


@pytest.mark.parametrize(
    "fields", [{"Age": "600"}, {"Date": "yesterday"}, {"Date": "Thu, 01 Jan 1970 00:00:00 GMT"}]
)
def test_a_date_that_is_not_the_servers_time_now(fields: dict[str, str]) -> None:
    """Lain in a cache, unreadable, or of a clock that nobody ever set."""
    assert parse_wait({"Date": DATE, "Retry-After": LATER, **fields}, NOW + 10) == 20


@pytest.mark.parametrize(
    ("fields", "wait"),
    [
        ({"Retry-After": "5", "RateLimit": '"a";r=0;t=60'}, 5),
        ({"Retry-After": "5", "Retry-After-Ms": "4200"}, 4.2),
        ({"x-ms-retry-after-ms": "100"}, 0.1),
        ({"RateLimit": '"a";r=0;t=20, "b";r=0;t=30, "c";r=5;t=90'}, 30),
        ({"RateLimit": '"a";r=5;t=20'}, None),
        ({"RateLimit": '"a";r=0'}, None),
        ({"RateLimit": "limit=10, remaining=0, reset=7"}, 7),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "15"}, 15),
        ({"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "15"}, None),
        ({"Retry-After": "soon", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "15"}, 15),
    ],
)
def test_what_goes_first(fields: dict[str, str], wait: float | None) -> None:
    assert parse_wait(fields, NOW) == wait


def test_a_reset_without_what_is_left() -> None:
    """Means something only of a refusal."""
    for fields in ({"X-RateLimit-Reset": "15"}, {"RateLimit": "limit=10, reset=15"}):
        assert parse_wait(fields, NOW) is None
        assert parse_wait(fields, NOW, status=200) is None
        assert parse_wait(fields, NOW, status=429) == 15


@pytest.mark.parametrize(
    "text",
    [
        '"a" ;r=0;t=5',
        '"a";r =0;t=5',
        '"a";r=0;t=5,',
        '"a";r=0.5;t=5',
        '"a";r=-1;t=5',
        '"a";r="0";t=5',
        '"a";r;t=5',
        '"a";R=0;t=5',
        '"d\u00e9faut";r=0;t=5',
        "'a';r=0;t=5",
        '("a" "b");r=0;t=5',
        '"a";r=9999999999999999;t=5',
        "5;r=0;t=5",
        "",
    ],
)
def test_malformed_structured_fields_are_ignored(text: str) -> None:
    """RFC 9651, section 4.2; and Python takes a Boolean for a number."""
    assert parse_quota({"RateLimit": text}, NOW) == []
    assert parse_wait({"RateLimit": text}, NOW) is None


def test_of_a_response_from_a_cache_the_numbers_are_another_ones() -> None:
    fields = {"RateLimit": '"a";r=0;t=5', "X-RateLimit-Remaining": "0", "Age": "3"}
    assert parse_quota(fields, NOW) == []
    assert parse_wait(fields, NOW) is None
    assert parse_wait({**fields, "Age": "0"}, NOW) == 5


def message(lines: list[tuple[str, str]]) -> Message:
    text = "".join(f"{name}: {value}\r\n" for name, value in lines)
    return http.client.parse_headers(BytesIO(text.encode() + b"\r\n"))


LINES = [("RateLimit", '"a";r=0;t=5'), ("ratelimit", '"b";r=3;t=9')]
BOTH = [quota("a", None, 0, 5), quota("b", None, 3, 9)]


@pytest.mark.parametrize(
    "headers",
    [
        LINES,
        tuple(LINES),
        iter(LINES),
        httpx.Headers(LINES),
        message(LINES),
        [(b"RateLimit", b'"a";r=0;t=5, "b";r=3;t=9')],
        CaseInsensitiveDict({"RATELIMIT": '"a";r=0;t=5, "b";r=3;t=9'}),
    ],
    ids=["list", "tuple", "iterator", "httpx", "http.client", "bytes", "requests"],
)
def test_whatever_a_library_keeps_headers_in(headers: Any) -> None:
    assert parse_quota(headers, NOW) == BOTH


@pytest.mark.parametrize(
    "headers", [None, 5, "Retry-After: 5", [5], [("Retry-After",)], {"Retry-After": None}, {1: 2}]
)
def test_what_are_no_headers(headers: Any) -> None:
    assert parse_wait(headers) is None
    assert parse_quota(headers) == []


def test_what_no_store_can_hold() -> None:
    """aiohttp decodes bytes that are no UTF-8 to lone surrogates."""
    fields = fields_of({"X-RateLimit-Note": "caf\udce9", "Retry-After": "5"})
    assert fields == {"x-ratelimit-note": "caf?", "retry-after": "5"}


NAMES = (
    "Retry-After Retry-After-Ms RateLimit RateLimit-Policy Date Age X-RateLimit-Reset "
    "X-RateLimit-Remaining RateLimit-Limit X-RateLimit-Reset-After X-RateLimit-Used"
)
names = st.sampled_from(NAMES.split())
texts = st.one_of(
    st.text(max_size=30),
    st.from_regex(r"[0-9]{0,25}(\.[0-9]{0,20})?[smh,; ]?", fullmatch=True),
    st.from_regex(DURATION, fullmatch=True),
    st.sampled_from([DATE, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59"]),
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(names, texts), st.sampled_from([None, 200, 429]))
@example({"Retry-After": "0001-01-01T00:00:00+23:59"}, None)
@example({"Retry-After": "9" * 15 + "h"}, None)
def test_never_raises_and_never_tells_nonsense(fields: dict[str, str], status: int | None) -> None:
    wait = parse_wait(fields, NOW, status=status)
    assert wait is None or (math.isfinite(wait) and wait >= 0)
    for told in parse_quota(fields, NOW):
        for number in told[1:]:
            assert number is None or (math.isfinite(number) and number >= 0)


def test_work_grows_with_the_items_of_a_field() -> None:
    """A field may have thousands: each name is looked at once, not beside each of the others."""
    looks = 0

    class Name(str):
        def lower(self) -> str:
            nonlocal looks
            looks += 1
            return super().lower()

    told = [Quota(Name(f"a{number}"), remaining=0) for number in range(100)]
    policies = [Quota(Name(f"A{number}"), limit=number) for number in range(1, 101)]
    found = joined(told, policies)
    assert [quota.limit for quota in found] == [None, *range(1, 100), 100]
    assert looks == 200
