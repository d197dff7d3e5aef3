"""Structured fields (RFC 9651), as much of them as is sent: lists of strings with integers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

# RFC 9651, section 3.3.1: fifteen digits, or the whole field fails to parse.
MAX_INTEGER = 999_999_999_999_999
# Parsers take strings of 1024 characters (section 3.3.3), but proxies limit all headers
# together to as little as 4096 bytes.
MAX_NAME = 128

_UNPRINTABLE = re.compile(r"[^\x20-\x7e]+")


def integer(value: int) -> int:
    """The nearest integer from 0 up that a field can carry."""
    return value if 0 <= value <= MAX_INTEGER else 0 if value < 0 else MAX_INTEGER


def printable(text: str) -> str:
    """Any text as printable ASCII: accents are dropped, and what remains foreign is a `-`.

    What an operator may call a limit is not what RFC 9651, section 3.3.3 lets a String hold,
    and Django would send "é" as Latin-1. The same text always gives the same name.
    """
    if not (text.isascii() and text.isprintable()):
        decomposed = unicodedata.normalize("NFKD", text)
        letters = "".join(c for c in decomposed if not unicodedata.combining(c))
        text = _UNPRINTABLE.sub("-", letters).strip(" -")
    return text[:MAX_NAME] or "limit"


def unique(names: Iterable[str]) -> list[str]:
    """The names in order, those seen before (in any case) with `-2`, `-3` and so on."""
    result: list[str] = []
    taken: set[str] = set()
    for name in names:
        candidate, number = name, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}-{number}"
        taken.add(candidate.lower())
        result.append(candidate)
    return result


def string(text: str) -> str:
    """An sf-string. Raises ValueError unless the text is printable ASCII (section 4.1.6)."""
    if _UNPRINTABLE.search(text):
        raise ValueError(f"A structured field can't hold {text!r}.")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def item(value: str, parameters: Mapping[str, int]) -> str:
    """A list's member: a value that is serialized already, and its parameters."""
    return value + "".join(f";{key}={integer(number)}" for key, number in parameters.items())
