"""All findings of one look. Whatever breaks while looking is a finding too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from ratelimits.checks.base import is_on, own_settings

from . import catalog, process, store
from . import settings as in_force
from .findings import Finding, worst

# Of the JSON, for whoever reads it: a new number only if what was there changes its meaning.
FORMAT = 1
PARTS: tuple[tuple[str, Callable[[], Iterator[Finding]]], ...] = (
    ("settings", in_force.look),
    ("store", store.look),
    ("breaker", process.look),
    ("catalog", catalog.look),
)
# Shorter ones would be found in any text.
SHORTEST_SECRET = 3


def examine() -> tuple[Finding, ...]:
    """Look at everything. Never raises, and waits for nobody for longer than seconds."""
    secrets = _secrets()
    return tuple(
        Finding(
            found.name,
            found.level,
            _hidden(found.text, secrets),
            _hidden(found.advice, secrets),
            found.value,
        )
        for name, look in PARTS
        if name == "settings" or _is_counting()
        for found in _looked(name, look)
    )


def as_json(findings: tuple[Finding, ...]) -> dict[str, Any]:
    """What --json prints."""
    return {
        "format": FORMAT,
        "level": worst(findings),
        "findings": [asdict(finding) for finding in findings],
    }


def _looked(name: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from look()
    except Exception as error:
        yield Finding(name, "problem", _("This can't be looked at: %r") % error)


def _is_counting() -> bool:
    try:
        return is_on()
    except Exception:
        # Settings that can't be read, which are a finding.
        return own_settings() is not None


def _hidden(text: str, secrets: Iterable[str]) -> str:
    """Without passwords, which what a library says of an address may repeat."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _secrets() -> list[str]:
    found = {*_passwords(settings.CACHES), *_passwords(settings.DATABASES)}
    return sorted((s for s in found if len(s) >= SHORTEST_SECRET), key=len, reverse=True)


def _passwords(value: Any, name: str = "") -> Iterator[str]:
    """What is called a password, or stands in an address where one does."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _passwords(inner, str(key))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _passwords(inner, name)
    elif isinstance(value, str):
        if "password" in name.lower():
            yield value
        for part in re.findall(r"://[^@]*?:(.*)@", value):
            # Of one with marks that should have been quoted, libraries tell pieces.
            yield from (part, *re.split(r"[/?#:@\[\]]", part))
