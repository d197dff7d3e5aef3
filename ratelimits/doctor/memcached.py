"""What memcached servers that count should be like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ratelimits.stores.facts import Facts, MemcachedFacts

from .findings import Finding, bytes_text, number_of, time_text


def judge(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts, MemcachedFacts):
        return
    for name, stats in facts.stats.items():
        if stats is None:
            yield _away(name)
        else:
            yield _server(name, stats)
            yield _evicted(name, stats)


def _away(name: str) -> Finding:
    """The take of this look was counted on another server."""
    return Finding(
        "store.server",
        "problem",
        f"{name} does not answer.",
        "Start it: no other has its keys, and STORE_FAILURE decides for their callers.",
        {"address": name},
    )


def _server(name: str, stats: Mapping[str, Any]) -> Finding:
    used, most = stats.get("bytes", 0), stats.get("limit_maxbytes", 0)
    value = {
        "address": name,
        "product": "memcached",
        "version": str(stats.get("version", "")),
        "uptime_seconds": stats.get("uptime", 0),
        "used_bytes": used,
        "max_bytes": most,
    }
    up = time_text(value["uptime_seconds"])
    text = f"{name}: memcached {value['version']}, up for {up}, "
    text += f"{bytes_text(used)} of {bytes_text(most)} used"
    return Finding("store.server", "ok", text, value=value)


def _evicted(name: str, stats: Mapping[str, Any]) -> Finding:
    evicted = stats.get("evictions", 0)
    value = {"address": name, "evicted_keys": evicted}
    text = f"{name}: {number_of(evicted, 'item')} evicted since it was started"
    if not evicted:
        return Finding("store.evictions", "ok", text, value=value)
    advice = (
        "Buckets among them were full again. More memory (option -m), or a server of their own."
    )
    return Finding("store.evictions", "warning", text, advice, value)
