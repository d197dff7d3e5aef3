"""Choices that are allowed, and do something else than they seem to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from ratelimits.limits import Limit
from ratelimits.models.base import LimitModel
from ratelimits.rows import limit_of

BYTES_PER_HIT = 12
SHORTEST_MONTH = 28 * 86400


def traps(rows: Iterable[LimitModel], beside: Iterable[LimitModel] = ()) -> list[str]:
    """Warnings about these limits; those `beside` them apply to the same requests."""
    own = _counting(rows)
    together = [*own, *_counting(beside)]
    return [
        *_edges(own, together),
        *_logs(own),
        *_idle(own, together),
    ]


def _counting(rows: Iterable[LimitModel]) -> list[Limit]:
    """Those that can refuse, or would if they were not in shadow."""
    limits = (limit_of(row) for row in rows)
    return [limit for limit in limits if limit and limit.mode != "off" and limit.rate.quota]


def _window(limit: Limit) -> int:
    return SHORTEST_MONTH if limit.rate.is_month else limit.rate.window


def _covers(other: Limit, limit: Limit) -> bool:
    """Whether whatever counts for `limit` is also held back by `other`."""
    return other.scope in ("", limit.scope) and other.mode == "enforce"


def _edges(own: Sequence[Limit], together: Sequence[Limit]) -> Iterator[str]:
    for limit in own:
        if limit.algorithm == "fixed_window" and not any(
            _softens(other, limit) for other in together
        ):
            yield _(
                "“%(name)s” is a fixed window, and no shorter bucket stands beside it: around "
                "the edge between two windows twice its quota (%(twice)s) can pass at once. "
                "Add a token bucket with a shorter period. A sliding counter has no such edge, but "
                "in the worst window it lets nearly as much pass; only a sliding log holds its "
                "quota in any window."
            ) % {"name": limit.name, "twice": number_format(2 * limit.quota, force_grouping=True)}


def _softens(other: Limit, limit: Limit) -> bool:
    return (
        _covers(other, limit)
        and other.algorithm != "fixed_window"
        and _window(other) < _window(limit)
        and other.capacity < limit.quota
    )


def _logs(own: Sequence[Limit]) -> Iterator[str]:
    for limit in own:
        if limit.algorithm == "sliding_log":
            size = number_format(limit.quota * BYTES_PER_HIT, force_grouping=True)
            yield _(
                "“%(name)s” is a sliding log, which keeps every request: up to %(size)s bytes "
                "in the store for each tenant. A token bucket keeps two numbers."
            ) % {"name": limit.name, "size": size}


def _idle(own: Sequence[Limit], together: Sequence[Limit]) -> Iterator[str]:
    for limit in own:
        tighter = next((other for other in together if _never_later(other, limit)), None)
        if tighter is not None:
            yield _(
                "“%(name)s” never refuses anything, since “%(tighter)s” is always the tighter one."
            ) % {"name": limit.name, "tighter": tighter.name}


def _never_later(other: Limit, limit: Limit) -> bool:
    """Whether `other` is empty whenever `limit` is. Only known of two buckets."""
    if not _covers(other, limit) or {other.algorithm, limit.algorithm} != {"token_bucket"}:
        return False
    if other.scope == limit.scope and _terms(other) == _terms(limit):
        return other.name < limit.name
    return other.capacity <= limit.capacity and _terms(other)[0] <= _terms(limit)[0]


def _terms(limit: Limit) -> tuple[Fraction, int]:
    return Fraction(limit.quota, limit.rate.window), limit.capacity
