"""DRF's own throttle classes, counted exactly: another import is all that changes.

They read what DRF's read, and can be overridden where those can. What differs is listed in
docs/coming-from.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from rest_framework import throttling
from rest_framework.request import Request

from ratelimits.algorithms import Operation
from ratelimits.entering import find_in_code
from ratelimits.flow import count, take_at_door
from ratelimits.limits import Decision
from ratelimits.places import is_spared, said
from ratelimits.requests import decision_of, plain
from ratelimits.tenants import is_exempt

from .buckets import bucket_of, history_of
from .overrides import counts_by_itself, has_last_word, is_usual, tell
from .passes import ask, let_pass, note_refused, pass_of
from .rates import read_rate
from .refusing import publish_at_end, refuse
from .undecided import Undecided, forget_wait

if TYPE_CHECKING:
    from rest_framework.views import APIView

Theirs: Any = throttling.SimpleRateThrottle
TheirsScoped: Any = throttling.ScopedRateThrottle
# In a tuple, where those who freeze time by replacing names of modules don't find it.
USUAL = (Theirs.timer,)
ALLOW, ALLOW_SCOPED = Theirs.allow_request, TheirsScoped.allow_request
PARSE, WAIT = Theirs.parse_rate, Theirs.wait


class SimpleRateThrottle(throttling.SimpleRateThrottle):
    """Limits by whatever `get_cache_key` gives; None is no limit.

    Raises ImproperlyConfigured for a rate that DRF would read as another one than it looks.
    """

    is_ratelimits_door = True

    # Until it was asked.
    decision: Decision | None = None
    num_requests: int | None = None
    duration: int | None
    _history: list[Any] | None = None

    def parse_rate(self, rate: Any) -> Any:
        """Requests and seconds, both None for no limit; see read_rate()."""
        theirs = super().parse_rate
        return read_rate(rate) if is_usual(theirs, PARSE) else theirs(rate)

    def allow_request(self, request: Request, view: APIView) -> bool:
        if Theirs.allow_request is not ALLOW:
            # Somebody has put another one in its place, such as tests that nothing is to limit.
            return super().allow_request(request, view)
        if counts_by_itself(self):
            tell(self)
            passes: bool = Theirs.allow_request(self, request, view)
            return passes
        if self.rate is None:
            return True
        self.key = self.get_cache_key(request, view)
        if self.key is None or self.num_requests is None:
            return True
        self.now = self.timer()
        if not isinstance(plain(request), HttpRequest):
            # Tests of projects make up requests that have nothing but what DRF's throttles read.
            request = HttpRequest()  # type: ignore[assignment]
        if said(view, request, "ratelimits_exempt") is True or is_spared(request):
            return True
        return self._ask(request, view)

    def _ask(self, request: Any, view: Any) -> bool:
        forget_wait(self)
        let_pass(request)
        before = decision_of(request)
        # A class may have instances with keys or rates of their own at one view.
        passing = pass_of(request, (type(self), str(self.key), self.num_requests, self.duration))
        found = None if is_exempt(request) else bucket_of(self, request, passing)
        find = find_in_code(found, 1)
        # By the clock of the store, or by the project's if it has overridden `timer`.
        at = None if self.timer is USUAL[0] else round(self.now * 1_000_000)
        self.decision = ask(
            request,
            peek=lambda: count(Operation.PEEK, request, 1, find),
            take=lambda: take_at_door(request, 1, find),
            at=at,
            undecided=has_last_word(self),
        )
        self._history = None
        # Tests of projects ask throttles also without a view.
        is_at_view = hasattr(view, "finalize_response")
        if is_at_view:
            # Before anything that may raise a refusal of its own.
            publish_at_end(view)
        passes = self.throttle_success() if self.decision.allowed else self.throttle_failure()
        if passes:
            return True
        refused = not self.decision.allowed
        if refused and has_last_word(self):
            undecided = Undecided(self, request, at, passing.names[-1], before)
            if is_at_view:
                undecided.stand_at(view)
            return False
        note_refused(request)
        if refused and is_at_view:
            refuse(view, self.decision)
        return False

    def throttle_success(self) -> bool:
        """Called for what passes. It is counted by then, also if this is overridden.

        What an `allow_request` that is a copy of DRF's has found to pass is counted here, as DRF
        counts.
        """
        if self._history is None:
            return True
        tell(self)
        return super().throttle_success()

    @property
    def history(self) -> list[Any]:
        """As many times as there were requests in the window, the newest first.

        The store doesn't tell all of them: known is when the oldest of a refusal ends.
        """
        if self._history is not None:
            return self._history
        if not hasattr(self, "now"):
            raise AttributeError("There is a history once the throttle was asked.")
        return history_of(self)

    @history.setter
    def history(self, value: list[Any]) -> None:
        self._history = value

    def wait(self) -> float | None:
        """Seconds until the same request passes; None if waiting doesn't help."""
        decision, theirs = self.decision, super().wait
        if decision is None or decision.allowed or not is_usual(theirs, WAIT):
            return theirs()
        return decision.retry_after if decision.wait is None else decision.wait.total_seconds()


class AnonRateThrottle(throttling.AnonRateThrottle, SimpleRateThrottle):
    """Limits those who are not authenticated, by what `get_ident` gives."""


class UserRateThrottle(throttling.UserRateThrottle, SimpleRateThrottle):
    """Limits by user, and those who are not authenticated by what `get_ident` gives."""


# With ours before DRF's, since projects go past this class by super(ScopedRateThrottle, self).
class ScopedRateThrottle(SimpleRateThrottle, throttling.ScopedRateThrottle):
    """Limits by user and by the view's `throttle_scope`; not a view that has none."""

    __init__ = throttling.ScopedRateThrottle.__init__

    def get_cache_key(self, request: Request, view: APIView) -> Any:
        """By DRF's class, also where another one comes before it."""
        return super(SimpleRateThrottle, self).get_cache_key(request, view)

    def allow_request(self, request: Request, view: APIView) -> bool:
        theirs = super(SimpleRateThrottle, self).allow_request
        if not is_usual(theirs, ALLOW_SCOPED):
            return theirs(request, view)
        self.scope = getattr(view, self.scope_attr, None)
        if not self.scope:
            return True
        # Before it was asked it knew of no view, and of no rate.
        self.rate = self.get_rate()
        self.num_requests, self.duration = self.parse_rate(self.rate)
        return super().allow_request(request, view)
