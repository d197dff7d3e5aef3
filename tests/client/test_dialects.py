"""Fields as vendors send them, each with what it says."""

from __future__ import annotations

import pytest

from ratelimits.client.headers import Quota, parse_quota, parse_wait

from .test_headers import LATER, NOW, quota

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
