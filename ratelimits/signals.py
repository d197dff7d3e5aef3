"""Signals of the app: what to connect to for metrics and alerts, and what tells it of edits.

Receivers may be plain or async functions. One that raises breaks nothing, and is logged once.
The first three are sent where a request is decided, which waits for the receivers, with the class
`Decision` as the sender; `ratelimits.limiter` and all doors send them. In common they have:

    decision    the Decision of this take
    request     Django's request; None if a tenant's key was given
    tenant      the tenant's key; None if the caller has none, or only limits in code were asked
    source      "store", or "local": decided in the process, by what it knows of an empty bucket
                or while the store is away
"""

from __future__ import annotations

from django.dispatch import Signal

from .logs import once


class Told(Signal):
    """A signal whose receivers may fail, each as often as it likes, for one line in the log."""

    def _log_robust_failure(self, receiver: object, err: Exception) -> None:
        name = getattr(receiver, "__qualname__", None) or type(receiver).__qualname__
        name = f"{getattr(receiver, '__module__', None)}.{name}"
        once.error(f"{name} fails as a receiver of a signal: {err!r}", name, err)


# A take was refused. Whatever a request took at other doors is given back by then.
refused = Told()

# Limits in shadow would have refused a take; it may have passed. kwargs also: outcomes (of those).
would_refuse = Told()

# A take was allowed and leaves no more than a tenth of a limit. kwargs also: outcome (of that
# limit). Each process tells of a bucket once in the limit's window, and in a minute, at most. It
# remembers 10,000 buckets; if there are more, it tells of some again.
nearly_used_up = Told()

# The store does not answer: from now on STORE_FAILURE decides. kwargs: fault (a text). Each
# process tells for itself, in a thread of its own, for which nobody waits. On a Redis cluster, it
# is told of each primary that is away, and of the whole if none is there.
store_down = Told()

# The store answers again. Sent like store_down, and never before it.
store_up = Told()

# Plans, their limits, service limits or costs of scopes were changed in bulk, so that no post_save
# or post_delete was sent. kwargs: using (database alias).
plans_edited = Signal()

# Tenants or their own limits were changed in bulk. kwargs: using, keys (a list of tenant keys,
# old and new ones; None if any tenant may be meant).
tenants_edited = Signal()

# Upstreams or their limits were changed in bulk. kwargs: using, keys (a list of slugs, old and new
# ones; None if any upstream may be meant).
upstreams_edited = Signal()

# An operator switched the mode of all limits. kwargs: mode ("settings" ends what was in force),
# until (a datetime), by, reason. Sent once, by the process in which that was done.
mode_switched = Told()
