"""Bodies: which of them can be sent again, and which answers are small enough to be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Bytes of an answer that are read to let its connection be used again, or to look into it.
SMALL = 64 * 1024


def is_seekable(file: Any) -> bool:
    """Can it be read once more? What only looks like a file can't tell."""
    # The seek() of an async file does nothing before it is awaited.
    if not hasattr(file, "seek") or hasattr(file, "__aiter__"):
        return False
    try:
        return bool(file.seekable())
    except Exception:
        return False


def is_small(fields: Mapping[str, str]) -> bool:
    """Is the body of a response known to be small?"""
    length = fields.get("content-length", "")
    return length.isascii() and length.isdecimal() and int(length[:20]) <= SMALL


def is_problem(fields: Mapping[str, str]) -> bool:
    media_type, _, _ = fields.get("content-type", "").partition(";")
    return media_type.strip().lower() == "application/problem+json"
