"""What the processes tell each other through the store."""

from __future__ import annotations

from collections.abc import Iterator

from ratelimits.catalog import plans_key
from ratelimits.conf import conf
from ratelimits.stores.base import Store
from ratelimits.stores.processes import COUNTED_FOR

from .findings import Finding, number_of, time_text


def look(store: Store) -> Iterator[Finding]:
    """May raise what the store does."""
    yield _version(store.lifetime(plans_key()))
    # Not announced: whoever looks serves no requests.
    yield _processes(store.recent_processes(COUNTED_FOR))


def _version(left: float | None) -> Finding:
    """When the plans were last edited, as far as the store still knows."""
    kept = 2 * conf.CATALOG_TTL
    ago = None if left is None or left > kept else kept - left
    value = {"seconds_since_edit": ago if ago is None else round(ago, 3), "without_ttl": False}
    if left == float("inf"):
        advice = "The next process to start gives it one; or now: manage.py ratelimits_refresh"
        text = "the plans' version has no end in the store"
        value = {"seconds_since_edit": None, "without_ttl": True}
        return Finding("catalog.version", "warning", text, advice, value)
    text = f"no edit of a plan that the store still knows of, as it does for {time_text(kept)}"
    if ago is not None:
        text = f"plans edited {time_text(ago)} ago, and every process told"
    return Finding("catalog.version", "ok", text, value=value)


def _processes(counted: int) -> Finding:
    value = {"counted": counted, "workers": conf.WORKERS}
    if conf.WORKERS is not None:
        text = f"WORKERS says {conf.WORKERS}; nobody counts them"
    else:
        text = f"{number_of(counted, 'process', 'processes')} took in the last "
        text += time_text(COUNTED_FOR)
    return Finding("processes", "ok", text, value=value)
