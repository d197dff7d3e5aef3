"""DRF's own tests of its throttles, unchanged, with ours in their place."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from rest_framework import throttling as theirs
from rest_framework.settings import api_settings

from ratelimits import throttling as ours
from tests.dropins.swapped import swapped

with swapped():
    from tests.dropins.drf import throttling as drf

ThrottlingTests = drf.ThrottlingTests
ScopedRateThrottleTests = drf.ScopedRateThrottleTests
IdWithXffBasicTests = drf.IdWithXffBasicTests
XffSpoofingTests = drf.XffSpoofingTests
XffUniqueMachinesTest = drf.XffUniqueMachinesTest
BaseThrottleTests = drf.BaseThrottleTests
SimpleRateThrottleTests = drf.SimpleRateThrottleTests
AnonRateThrottleTests = drf.AnonRateThrottleTests

pytestmark = pytest.mark.usefixtures("still")

# In test_dropins.py is what happens instead.
DIFFERENT = ("test_request_throttling_multiple_throttles", "test_throttle_rate_change_negative")
for name in DIFFERENT:
    refused_counts = pytest.mark.xfail(reason="Refused requests take nothing.", strict=True)
    setattr(ThrottlingTests, name, refused_counts(getattr(ThrottlingTests, name)))

# Of tests/test_throttling.py in djangorestframework-3.18.3.tar.gz.
DIGEST = "8f2a7c4becc177b28c0faa5944c6377c4db51dc80f883b349db6333b2d6c308f"


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """They leave things changed behind, each for the next one."""
    monkeypatch.setattr(api_settings, "NUM_PROXIES", None)
    monkeypatch.setattr(ours.SimpleRateThrottle, "scope", None)
    yield


def test_they_are_unchanged_and_try_our_classes() -> None:
    assert sha256(Path(str(drf.__file__)).read_bytes()).hexdigest() == DIGEST
    for kind in ("SimpleRateThrottle", "AnonRateThrottle", "ScopedRateThrottle"):
        assert getattr(drf, kind) is getattr(ours, kind)
        assert getattr(theirs, kind) is not getattr(ours, kind)
    assert issubclass(drf.MockView.throttle_classes[0], ours.UserRateThrottle)


def test_all_of_them_are_here_and_nearly_all_pass() -> None:
    def tests_of(module: dict[str, Any]) -> set[str]:
        cases = [each for each in module.values() if isinstance(each, type)]
        return {f"{c.__name__}.{n}" for c in cases for n in vars(c) if n.startswith("test_")}

    assert tests_of(globals()) == tests_of(vars(drf))
    assert len(DIFFERENT) * 10 < len(tests_of(vars(drf)))
