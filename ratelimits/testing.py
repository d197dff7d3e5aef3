"""For the tests of projects: no test finds what another one has counted."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.test import override_settings


@contextmanager
def fresh_counts() -> Iterator[None]:
    """All buckets are full: with `with`, as a decorator, or in a fixture.

    Nothing is deleted. Names in the store are made with a secret of their own meanwhile, so
    that whatever else is in the cache stays, and tests that run at once do not meet. Settings
    that a test overrides within it have to keep what is in RATELIMITS.
    """
    own = getattr(settings, "RATELIMITS", None) or {}
    with override_settings(RATELIMITS={**own, "KEY_SECRET": secrets.token_hex()}):
        yield
