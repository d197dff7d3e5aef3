from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from ratelimits.replay import times
from ratelimits.replay.times import clock

AT = 1_700_000_000_000_000


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("14/Nov/2023:22:13:20 +0000", AT),
        ("15/Nov/2023:03:43:20 +0530", AT),
        ("14/Nov/2023:14:13:20 -0800", AT),
        ("2023-11-14T22:13:20Z", AT),
        ("2023-11-14T22:13:20", AT),
        ("2023-11-14 22:13:20 UTC", AT),
        ("2023-11-14T23:13:20+01:00", AT),
        ("2023-11-14 23:13:20+01", AT),
        ("2023-11-14t22:13:20z", AT),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
        ("31/Dec/2016:23:59:60 +0000", 1_483_228_800_000_000),
        ("2023-11-14T14:13:20.25-0800", AT + 250_000),
        ("2023-11-14T22:13:20.123456789Z", AT + 123_456),
        ("2023-11-14 22:13:20,5", AT + 500_000),
        ("1700000000", AT),
        ("1700000000.123", AT + 123_000),
        ("1700000000.1", AT + 100_000),
        (1_699_999_999, AT - 1_000_000),
        (1_700_000_000_123, AT + 123_000),
        (1_700_000_000_123_456, AT + 123_456),
        (1_700_000_000_123_456_789, AT + 123_456),
        ("1.7e9", AT),
        ("1700000000123.5", AT + 123_500),
        ("29/Feb/2024:00:00:00 +0000", 1_709_164_800_000_000),
    ],
)
def test_times(text: Any, right: int) -> None:
    read = clock()
    assert read(text) == right
    # Also the second time, when it is known.
    assert read(text) == right


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "-",
        "yesterday",
        "31/Feb/2024:00:00:00 +0000",
        "01/Foo/2024:00:00:00 +0000",
        "2023-13-01T00:00:00Z",
        "2023-11-14T25:00:00Z",
        "14/Nov/2023:22:60:00 +0000",
        "14/Nov/2023:22:00:61 +0000",
        "-5",
        "nan",
        "inf",
        "1e400",
        -1,
        10**25,
        "14/Nov/2023:22:13:20",
    ],
)
def test_no_times(text: Any) -> None:
    assert clock()(text) is None


def test_exactly() -> None:
    """Every millisecond of a second, which a float would not keep apart from its neighbours."""
    read = clock()
    assert [read(f"1799999999.{ms:03}") for ms in range(1000)] == [
        1_799_999_999_000_000 + ms * 1000 for ms in range(1000)
    ]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "MOST_KEPT", 3)
    read = clock()
    for second in (1, 2, 3, 4, 5, 1):
        at = datetime.fromtimestamp(second, timezone.utc)
        assert read(f"{at:%d/%b/%Y:%H:%M:%S} +0000") == second * 1_000_000
