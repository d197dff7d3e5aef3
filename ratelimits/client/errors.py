"""What the client half raises on purpose."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Any

from ratelimits.exceptions import RateLimitError
from ratelimits.texts import gettext as _


class RetryLater(RateLimitError):
    """The call must wait for longer than it may: nothing was slept, and a queue can take the job.

    `delay` are seconds from when it was raised, `limit` the name of the limit that decides ("" if
    an answer of the vendor's does), `reason` one line for people. `response` is the answer that
    was refused, None if nothing was sent; it does not travel when the error is pickled.
    """

    response: Any = None

    def __init__(self, delay: float, limit: str = "", reason: str = "") -> None:
        # All of them, so that the error can be pickled and made again.
        super().__init__(delay, limit, reason)
        self.delay = delay
        self.limit = limit
        self.reason = reason
        self._raised = datetime.now(timezone.utc)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.delay, self.limit, self.reason), {"_raised": self._raised}

    def __str__(self) -> str:
        told = _("%(reason)s: try again in %(delay).3f s.")
        return told % {"reason": self.reason or _("Not now"), "delay": self.delay}

    @property
    def retry_after(self) -> int:
        """The delay in whole seconds, rounded up, at least 1."""
        return max(1, math.ceil(self.delay))

    @property
    def until(self) -> datetime:
        """When the delay is over, in UTC; the last moment there is if nobody lives to see it."""
        try:
            return self._raised + timedelta(seconds=self.delay)
        except OverflowError:
            return datetime.max.replace(tzinfo=timezone.utc)


class UnknownUpstream(RateLimitError):
    """There is no upstream of this slug in the admin."""


class NeverPasses(RateLimitError, ValueError):
    """A call costs more than one of the upstream's limits ever has."""
