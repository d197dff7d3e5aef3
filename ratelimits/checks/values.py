"""What each setting may be: one rule for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any

from django.core.checks import CheckMessage, Error
from django.utils.functional import Promise

from ratelimits.conf import DEFAULTS
from ratelimits.publishing.problems import QUOTA_EXCEEDED, REDUCED_CAPACITY

from .base import meant, quoted, shown
from .paths import path, paths

Rule = Callable[[str, Any], Iterable[CheckMessage]]

HEADERS = ("ratelimit", "ratelimit-legacy", "x-ratelimit")
PROBLEMS = (QUOTA_EXCEEDED, REDUCED_CAPACITY)
# A reference with a scheme, or a path on this server (RFC 3986, RFC 9457 section 3.1.1).
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:|/)[!-~]*")


def wrong(name: str, text: str, hint: str) -> Error:
    return Error(f'RATELIMITS["{name}"] {text}', hint=hint, id="ratelimits.E003")


def choice(*allowed: str) -> Rule:
    def rule(name: str, value: Any) -> Iterator[CheckMessage]:
        if value in allowed:
            return
        best = meant(value, allowed) or DEFAULTS[name]
        others = quoted(word for word in allowed if word != best)
        hint = f'Write: "{name}": "{best}" (or {others})'
        yield wrong(name, f"is {shown(value)}, which is none of {quoted(allowed)}.", hint)

    return rule


def whole(least: int, most: int | None = None) -> Rule:
    span = f"of {least} or more" if most is None else f"from {least} to {most}"

    def rule(name: str, value: Any) -> Iterator[CheckMessage]:
        known = isinstance(value, int) and not isinstance(value, bool)
        if not known or value < least or (most is not None and value > most):
            hint = f'Write for example: "{name}": {DEFAULTS[name]}'
            yield wrong(name, f"must be a whole number {span}, not {shown(value)}.", hint)

    return rule


def workers(name: str, value: Any) -> Iterator[CheckMessage]:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        hint = f'Write for example: "{name}": 4, or None'
        yield wrong(
            name, f"must be a whole number of 1 or more, or None, not {shown(value)}.", hint
        )


def seconds(most: int, or_none: bool = False) -> Rule:
    span = f"{'of 0 or more' if or_none else 'above 0'}, {most} at most"

    def rule(name: str, value: Any) -> Iterator[CheckMessage]:
        known = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not known or not isfinite(value) or not 0 <= value <= most or not (value or or_none):
            hint = f'Write for example: "{name}": {DEFAULTS[name]}'
            text = f"must be a number of seconds {span}, not {shown(value)}."
            yield wrong(name, text, hint)

    return rule


def alias(name: str, value: Any) -> Iterator[CheckMessage]:
    if not isinstance(value, str):
        text = f"must be the name of an entry in CACHES, not {shown(value)}."
        yield wrong(name, text, f'Write for example: "{name}": "default"')


def secret(name: str, value: Any) -> Iterator[CheckMessage]:
    """The value is never shown."""
    if value is not None and not (isinstance(value, (str, bytes)) and value):
        hint = f'Write: "{name}": None, for one that is derived from SECRET_KEY'
        yield wrong(name, "must be a text that is not empty, or None.", hint)


def headers(name: str, value: Any) -> Iterator[CheckMessage]:
    example = f'Write for example: "{name}": [{quoted(DEFAULTS[name])}]'
    if not isinstance(value, (list, tuple)):
        yield wrong(name, f"must be a list, not {shown(value)}.", example)
        return
    for entry in value:
        if entry not in HEADERS:
            close = meant(entry, HEADERS)
            hint = f'Did you mean "{close}"?' if close else example
            yield wrong(name, f"has {shown(entry)}, which is none of {quoted(HEADERS)}.", hint)


def prefixes(name: str, value: Any) -> Iterator[CheckMessage]:
    if not isinstance(value, (list, tuple)):
        text = f"must be a list of path prefixes, not {shown(value)}."
        yield wrong(name, text, f'Write for example: "{name}": ["/api/"]')
        return
    for entry in value:
        if not isinstance(entry, str):
            yield wrong(name, f"has {shown(entry)}, which is no text.", f'"{name}": ["/api/"]')
        elif not entry.startswith("/"):
            text = f"has {shown(entry)}, with which no path begins: they begin with a slash."
            yield wrong(name, text, f'Write: "{name}": [{quoted(["/" + entry])}]')


def problem_types(name: str, value: Any) -> Iterator[CheckMessage]:
    example = f'Write for example: "{name}": {{"{QUOTA_EXCEEDED}": "https://example.com/quota"}}'
    if not isinstance(value, dict):
        yield wrong(name, f"must be a dictionary, not {shown(value)}.", example)
        return
    for key, uri in value.items():
        if key not in PROBLEMS:
            close = meant(key, PROBLEMS)
            hint = f'Did you mean "{close}"?' if close else example
            yield wrong(name, f"has {shown(key)}, which is none of {quoted(PROBLEMS)}.", hint)
        # A lazy one, such as that of reverse_lazy(), would import the project's URLs.
        if not isinstance(uri, Promise) and not (isinstance(uri, str) and _URI.fullmatch(uri)):
            yield wrong(name, f'has {shown(uri)} for "{key}", which is no URI.', example)


RULES: dict[str, Rule] = {
    "MODE": choice("enforce", "shadow", "off"),
    "CACHE": alias,
    "TENANT": paths,
    "PLAN": path,
    "TENANT_LABEL": path,
    "EXEMPT": path,
    "PROTECT": prefixes,
    "TRUSTED_PROXIES": whole(0),
    "IPV6_PREFIX": whole(1, 128),
    "HEADERS": headers,
    "PROBLEM_TYPES": problem_types,
    "RESPONSE": path,
    "KEY_SECRET": secret,
    "STORE_TIMEOUT": seconds(10),
    "STORE_FAILURE": choice("local", "allow", "deny"),
    "WORKERS": workers,
    "LOCAL_REFUSALS": seconds(60, or_none=True),
    "CATALOG_TTL": seconds(86400),
    "CLOCK": choice("store", "process"),
}
