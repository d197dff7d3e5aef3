"""The header fields of a response, whatever a client library keeps them in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def fields_of(headers: Any) -> dict[str, str]:
    """Values by lower-case names; of a field with several lines, joined (RFC 9110, section 5.3).

    Takes a mapping, pairs, or what requests, httpx, urllib3, http.client and Django have. What is
    neither is left out: nothing is raised.
    """
    joined: dict[str, list[str]] = {}
    for pair in _pairs(headers):
        if isinstance(pair, (tuple, list)) and len(pair) == 2:
            name, value = map(_text, pair)
            if name is not None and value is not None:
                joined.setdefault(name.strip().lower(), []).append(value.strip(" \t"))
    return {name: ", ".join(values) for name, values in joined.items()}


def _pairs(headers: Any) -> Iterable[Any]:
    try:
        # httpx joins lines in items(), others do not know multi_items().
        items = getattr(headers, "multi_items", None) or getattr(headers, "items", None)
        return list(items() if items is not None else headers)
    except Exception:
        return ()


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, bool):
        return None
    if not isinstance(value, (str, int, float)):
        return None
    # As aiohttp reads bytes that are no UTF-8, which no store can hold.
    return str(value).encode("utf-8", "replace").decode()
