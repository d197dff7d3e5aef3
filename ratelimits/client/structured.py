"""The structured fields `RateLimit` and `RateLimit-Policy`, in all their revisions.

draft-ietf-httpapi-ratelimit-headers: -11 has a list of strings with `r` and `t`; the revision after
it may say `a` and `w`; -07 had a dictionary. Unknown parameters are comments. A field that does not
parse is ignored as a whole (RFC 9651, section 4.2), an item without a usable number alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import http_sf

from .quotas import Quota
from .times import until

Item = tuple[Any, dict[str, Any]]


def joined(told: Iterable[Quota], policies: Iterable[Quota]) -> list[Quota]:
    """What is left of limits, with what their policies say, and the policies of the others.

    By name, which the next revision compares without regard to case; one that has no policy of
    its name, as those up to -07 have none, by its number.
    """
    left = dict(enumerate(policies))
    by_name = _places((place, policy.name.lower()) for place, policy in left.items())
    by_limit = _places((place, policy.limit) for place, policy in left.items())
    found = []
    for quota in told:
        place = _first_left(by_name.get(quota.name.lower()), left)
        if place is None and quota.limit is not None:
            place = _first_left(by_limit.get(quota.limit), left)
        found.append(quota if place is None else quota.joined(left.pop(place)))
    return [*found, *left.values()]


def _places(entries: Iterable[tuple[int, Any]]) -> dict[Any, deque[int]]:
    """Where each key is, in order: a field may have as many items as a server lets pass."""
    found: dict[Any, deque[int]] = {}
    for place, key in entries:
        found.setdefault(key, deque()).append(place)
    return found


def _first_left(places: deque[int] | None, left: Mapping[int, Quota]) -> int | None:
    while places and places[0] not in left:
        places.popleft()
    return places[0] if places else None


def amounts_of(fields: Mapping[str, str], now: float) -> Iterator[Quota]:
    """What `RateLimit` says is left; the fields by their lower-case names.

    `now` is the server's time, since some tell a moment where the drafts have seconds.
    """
    text = fields.get("ratelimit", "")
    for name, parameters in _items(text):
        left = _whole(parameters.get("r", parameters.get("a")))
        if left is not None and isinstance(name, (str, http_sf.Token)):
            seconds = _whole(parameters.get("t", parameters.get("w")))
            yield Quota(str(name), None, left, _until(seconds, now))
    dictionary = _parsed(text, "dictionary")
    if isinstance(dictionary, dict) and "limit" in dictionary:
        numbers = (_whole(_value(dictionary.get(key))) for key in ("limit", "remaining", "reset"))
        limit, left, seconds = numbers
        yield Quota("", limit, left, _until(seconds, now))


def policies_of(fields: Mapping[str, str]) -> Iterator[Quota]:
    """What `RateLimit-Policy` says, or what some call it with an X."""
    text = fields.get("ratelimit-policy") or fields.get("x-ratelimit-policy", "")
    for value, parameters in _items(text):
        if isinstance(value, (str, http_sf.Token)):
            name, limit = str(value), _whole(parameters.get("q", parameters.get("l")))
        else:
            # Up to -07 the number itself; the parameter is what some gateways add.
            limit = _whole(value)
            name = str(parameters.get("name", limit))
        if limit is not None:
            yield Quota(name, limit, None, None, _whole(parameters.get("w")) or None)


def _items(text: str) -> list[Item]:
    found = _parsed(text, "list")
    return [item if isinstance(item, tuple) else (item, {}) for item in found or ()]


def _value(member: Any) -> Any:
    return member[0] if isinstance(member, tuple) else member


def _parsed(text: str, kind: str) -> Any:
    try:
        return http_sf.parse(text.encode("latin-1"), tltype=kind)
    except (http_sf.StructuredFieldError, ValueError):
        return None


def _until(seconds: int | None, now: float) -> float | None:
    return None if seconds is None else until(seconds, now)


def _whole(value: Any) -> int | None:
    """An Integer from 0 on. A Boolean is one too, for Python."""
    return value if type(value) is int and value >= 0 else None
