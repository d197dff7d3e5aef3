"""Fields as vendors send them, and as nobody should."""

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


GITHUB = {
    "x-ratelimit-limit": "15000",
    "x-ratelimit-remaining": "0",
    "x-ratelimit-used": "15000",
    "x-ratelimit-reset": "1796126499",
    "x-ratelimit-resource": "core",
}
GITLAB = {
    "RateLimit-Limit": "60",
    "RateLimit-Name": "throttle_authenticated_web",
    "RateLimit-Observed": "67",
    "RateLimit-Remaining": "0",
    "RateLimit-Reset": "1796126430",
    "RateLimit-ResetTime": LATER,
}
OPENAI = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "8.64s",
    "x-ratelimit-limit-tokens": "150000",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-tokens": "6m0s",
}
VENDORS: dict[str, tuple[dict[str, str], list[Quota], float | None]] = {
    "GitHub": (GITHUB, [quota("core", 15000, 0, 99)], 99),
    "GitLab": (GITLAB, [quota("throttle_authenticated_web", 60, 0, 30)], 30),
    "Bluesky": (
        {
            "RateLimit-Limit": "3000",
            "RateLimit-Remaining": "2999",
            "RateLimit-Reset": "1796126700",
            "RateLimit-Policy": "3000;w=300",
        },
        [quota("", 3000, 2999, 300, 300)],
        None,
    ),
    "Kong": (
        {
            "RateLimit-Limit": "100",
            "RateLimit-Remaining": "0",
            "RateLimit-Reset": "15",
            "Retry-After": "15",
            "X-RateLimit-Limit-Minute": "100",
            "X-RateLimit-Remaining-Minute": "0",
        },
        [quota("", 100, 0, 15), quota("minute", 100, 0, None, 60)],
        15,
    ),
    "Envoy": (
        {
            "X-RateLimit-Limit": '10, 10;w=1;name="per-ip", 1000;w=3600',
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": "1",
        },
        [quota("", 10, 0, 1)],
        1,
    ),
    "APISIX": (
        {"X-1-RateLimit-Limit": "5", "X-1-RateLimit-Remaining": "0", "X-1-RateLimit-Reset": "3"},
        [quota("1", 5, 0, 3)],
        3,
    ),
    "Cloudflare": (
        {
            "Ratelimit": '"default";r=50;t=30',
            "Ratelimit-Policy": '"burst";q=100;w=60',
            "retry-after": "12",
        },
        [quota("default", None, 50, 30), quota("burst", 100, None, None, 60)],
        12,
    ),
    "Cloudflare before": (
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": LATER},
        [quota("", None, 0, 30)],
        30,
    ),
    "Atlassian": (
        {
            "Retry-After": "1847",
            "X-RateLimit-Limit": "100000",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": "2026-12-01T13:00Z",
            "RateLimit-Reason": "jira-quota-global-based",
        },
        [quota("", 100000, 0, 3600)],
        1847,
    ),
    "Atlassian, structured": (
        {"RateLimit": '"a";t=200,"b";r=90;t=1'},
        [quota("b", None, 90, 1)],
        None,
    ),
    "Hugging Face": (
        {
            "RateLimit": '"api";r=0;t=168',
            "RateLimit-Policy": '"fixed window";"api";q=500;w=300',
        },
        [quota("api", None, 0, 168)],
        168,
    ),
    "express-rate-limit": (
        {
            "RateLimit": '"7-in-1.5sec"; r=6; t=2',
            "RateLimit-Policy": '"7-in-1.5sec"; q=7; w=2; pk=:MTIzNDU2Nzg5MGFi:',
        },
        [quota("7-in-1.5sec", 7, 6, 2, 2)],
        None,
    ),
    "Medplum": (
        {"RateLimit": '"requests";r=59999;t=60, "fhirInteractions";r=49894;t=60'},
        [quota("requests", None, 59999, 60), quota("fhirInteractions", None, 49894, 60)],
        None,
    ),
    "monday.com": (
        {
            "RateLimit-Policy": '"minuteRate";q=100;w=60, "concurrency";q=40;'
            'qu="concurrent-requests"',
            "RateLimit": '"minuteRate";r=0;t=38, "concurrency";r=249',
        },
        [quota("minuteRate", 100, 0, 38, 60), quota("concurrency", 40, 249)],
        38,
    ),
    "Zendesk": (
        {
            "x-rate-limit": "700",
            "ratelimit-limit": "700",
            "x-rate-limit-remaining": "699",
            "ratelimit-remaining": "699",
            "ratelimit-reset": "41",
            "zendesk-ratelimit-tickets-index": "total=100; remaining=0; resets=41",
        },
        [quota("tickets-index", 100, 0, 41), quota("", 700, 699, 41)],
        41,
    ),
    "Okta": (
        {
            "X-Rate-Limit-Limit": "1200",
            "X-Rate-Limit-Remaining": "0",
            "X-Rate-Limit-Reset": "1796126459",
        },
        [quota("", 1200, 0, 59)],
        59,
    ),
    "Reddit": (
        {"x-ratelimit-used": "43", "x-ratelimit-remaining": "57.9", "x-ratelimit-reset": "312"},
        [quota("", None, 57, 312)],
        None,
    ),
    "Discord": (
        {
            "X-RateLimit-Limit": "10",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": "1796126470.123",
            "X-RateLimit-Reset-After": "64.57",
            "X-RateLimit-Bucket": "abcd1234",
            "X-RateLimit-Scope": "user",
        },
        [quota("", 10, 0, 64.57)],
        64.57,
    ),
    "Discord, shared": (
        {
            "Retry-After": "1337",
            "X-RateLimit-Remaining": "9",
            "X-RateLimit-Reset-After": "64.57",
        },
        [quota("", None, 9, 64.57)],
        1337,
    ),
    "Shopify": (
        {"X-Shopify-Shop-Api-Call-Limit": "32/40", "Retry-After": "2.0"},
        [quota("", 40, 8)],
        2,
    ),
    "OpenAI": (
        OPENAI,
        [quota("requests", 60, 0, 8.64), quota("tokens", 150000, 149984, 360)],
        8.64,
    ),
    "Anthropic": (
        {
            "anthropic-ratelimit-requests-limit": "1000",
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2026-12-01T11:59:59Z",
            "anthropic-ratelimit-input-tokens-remaining": "7",
        },
        [quota("requests", 1000, 0, 0), quota("input-tokens", None, 7)],
        0,
    ),
    "HubSpot": (
        {
            "X-HubSpot-RateLimit-Max": "100",
            "X-HubSpot-RateLimit-Remaining": "99",
            "X-HubSpot-RateLimit-Interval-Milliseconds": "10000",
            "X-HubSpot-RateLimit-Daily": "250000",
            "X-HubSpot-RateLimit-Daily-Remaining": "249999",
        },
        [quota("", 100, 99), quota("daily", 250000, 249999, None, 86400)],
        None,
    ),
    "Linear": (
        {
            "X-RateLimit-Requests-Limit": "1500",
            "X-RateLimit-Requests-Remaining": "0",
            "X-RateLimit-Requests-Reset": "1796126410000",
            "X-Complexity": "7",
        },
        [quota("requests", 1500, 0, 10)],
        10,
    ),
    "RapidAPI": (
        {
            "x-ratelimit-requests-limit": "240000",
            "x-ratelimit-requests-remaining": "0",
            "x-ratelimit-requests-reset": "2163603",
        },
        [quota("requests", 240000, 0, 2163603)],
        2163603,
    ),
    "Yelp": (
        {
            "RateLimit-DailyLimit": "500",
            "RateLimit-Remaining": "0",
            "RateLimit-ResetTime": "2026-12-02T00:00:00+00:00",
        },
        [quota("", 500, 0, 43200)],
        43200,
    ),
    "Brave": (
        {
            "X-RateLimit-Limit": "1, 15000",
            "X-RateLimit-Policy": "1;w=1, 15000;w=2592000",
            "X-RateLimit-Remaining": "1, 0",
            "X-RateLimit-Reset": "1, 1419704",
        },
        [quota("1", 1, 1, 1, 1), quota("2", 15000, 0, 1419704, 2592000)],
        1419704,
    ),
    "Datadog": (
        {
            "X-RateLimit-Limit": "300",
            "X-RateLimit-Period": "3600",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": "1200",
            "X-RateLimit-Name": "query",
        },
        [quota("query", 300, 0, 1200, 3600)],
        1200,
    ),
    "hono-rate-limiter": (
        {
            "RateLimit-Policy": "100; w=60",
            "RateLimit-Limit": "100",
            "RateLimit-Remaining": "99",
            "RateLimit-Reset": "58",
        },
        [quota("", 100, 99, 58, 60)],
        None,
    ),
    "draft-07": (
        {"RateLimit": "limit=100, remaining=50, reset=5", "RateLimit-Policy": "100;w=60"},
        [quota("", 100, 50, 5, 60)],
        None,
    ),
    "after draft-11": (
        {"RateLimit": "Default;a=0;w=30;c=2", "RateLimit-Policy": '"default";q=50;w=60'},
        [quota("Default", 50, 0, 30, 60)],
        30,
    ),
    "none": ({"Content-Type": "text/html"}, [], None),
}


@pytest.mark.parametrize("vendor", VENDORS)
def test_vendors(vendor: str) -> None:
    fields, quotas, wait = VENDORS[vendor]
    assert parse_quota(fields, NOW) == quotas
    assert parse_wait(fields, NOW) == wait


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
