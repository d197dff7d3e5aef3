"""What memcached servers that count should be like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits.stores.facts import Facts, MemcachedFacts

from .findings import Finding, bytes_text, time_text


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
        _("%s does not answer.") % name,
        _("Start it: no other has its keys, and STORE_FAILURE decides for their callers."),
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
    text = _("%(address)s: memcached %(version)s, up for %(time)s, %(used)s of %(most)s used") % {
        **value,
        "time": time_text(value["uptime_seconds"]),
        "used": bytes_text(used),
        "most": bytes_text(most),
    }
    return Finding("store.server", "ok", text, value=value)


def _evicted(name: str, stats: Mapping[str, Any]) -> Finding:
    evicted = stats.get("evictions", 0)
    value = {"address": name, "evicted_keys": evicted}
    text = ngettext(
        "%(address)s: %(count)s item evicted since it was started",
        "%(address)s: %(count)s items evicted since it was started",
        evicted,
    ) % {"address": name, "count": f"{evicted:,}"}
    if not evicted:
        return Finding("store.evictions", "ok", text, value=value)
    advice = _(
        "Buckets among them were full again. More memory (option -m), or a server of their own."
    )
    return Finding("store.evictions", "warning", text, advice, value)
