"""For the tests of projects: `docs/testing.md` shows all of it.

Nothing here is for a running service: what is put in force holds for the whole process.
"""

from __future__ import annotations

from .asserting import assert_limited, assert_not_limited
from .counts import fresh_counts, reset
from .freezing import frozen
from .overriding import override
from .switching import off

__all__ = [
    "assert_limited",
    "assert_not_limited",
    "fresh_counts",
    "frozen",
    "off",
    "override",
    "reset",
]
