from __future__ import annotations

import pytest

from ratelimits import conf


@pytest.fixture(autouse=True)
def _nothing_imported() -> None:
    """Pages have modules of the same names, and paths are looked up once in a process."""
    conf._import.cache_clear()
