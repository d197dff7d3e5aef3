"""Checks of RATELIMITS itself: its keys, then each value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Warning

from ratelimits.conf import DEFAULTS, conf

from .base import is_on, is_production, meant, own_settings, quoted, shown
from .values import RULES


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    own = own_settings()
    if own is None:
        return [
            Error(
                "RATELIMITS must be a dictionary.",
                hint='Write for example: RATELIMITS = {"CACHE": "default"}',
                id="ratelimits.E001",
            )
        ]
    return [fault for name, value in own.items() for fault in _faults(name, value)]


def _faults(name: Any, value: Any) -> Iterator[CheckMessage]:
    if name in DEFAULTS:
        yield from RULES[name](name, value)
        return
    close = meant(name, DEFAULTS)
    hint = f"Remove it. The settings are {quoted(sorted(DEFAULTS))}."
    if close is not None:
        # Without its value, which may be a secret.
        hint = f'Did you mean "{close}"?'
    yield Error(f"RATELIMITS has no setting {shown(name)}.", hint=hint, id="ratelimits.E002")


def check_clock(**kwargs: Any) -> list[CheckMessage]:
    """Processes' clocks differ, which is why the store's counts."""
    if not is_on() or conf.CLOCK != "process" or not is_production():
        return []
    return [
        Warning(
            'RATELIMITS["CLOCK"] is "process", which is meant for tests with a frozen clock: '
            "servers whose clocks differ count wrongly.",
            hint='Write: "CLOCK": "store"',
            id="ratelimits.W001",
        )
    ]
