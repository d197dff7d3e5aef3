"""What the processes tell each other through the store."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits.catalog import plans_key
from ratelimits.conf import conf
from ratelimits.stores.base import Store
from ratelimits.stores.processes import COUNTED_FOR

from .findings import Finding, time_text


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
        advice = _("The next process to start gives it one; or now: manage.py ratelimits_refresh")
        text = _("the plans' version has no end in the store")
        value = {"seconds_since_edit": None, "without_ttl": True}
        return Finding("catalog.version", "warning", text, advice, value)
    if ago is None:
        text = _("no edit of a plan that the store still knows of, as it does for %s")
        text %= time_text(kept)
    else:
        text = _("plans edited %s ago, and every process told") % time_text(ago)
    return Finding("catalog.version", "ok", text, value=value)


def _processes(counted: int) -> Finding:
    value = {"counted": counted, "workers": conf.WORKERS}
    if conf.WORKERS is not None:
        text = _("WORKERS says %s; nobody counts them") % conf.WORKERS
    else:
        text = ngettext(
            "%(count)s process took in the last %(time)s",
            "%(count)s processes took in the last %(time)s",
            counted,
        ) % {"count": f"{counted:,}", "time": time_text(COUNTED_FOR)}
    return Finding("processes", "ok", text, value=value)
