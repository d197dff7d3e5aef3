"""Our throttle classes under the names of DRF's, for as long as something is imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from rest_framework import throttling as theirs

from ratelimits import throttling as ours

NAMES = ("AnonRateThrottle", "ScopedRateThrottle", "SimpleRateThrottle", "UserRateThrottle")


@contextmanager
def swapped() -> Iterator[None]:
    with mock.patch.multiple(theirs, **{name: getattr(ours, name) for name in NAMES}):
        yield
