"""The door for Django REST framework: one throttle class, no other setting."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from .effects import drive
from .flow import at_view
from .limits import Decision
from .publishing.problems import problem_of
from .publishing.responses import publish
from .rendering import show
from .requests import decision_of, publishes_elsewhere
from .views import is_spared, said

if TYPE_CHECKING:
    # DRF's views import DEFAULT_THROTTLE_CLASSES, and so this module, before they are ready.
    from rest_framework.views import APIView


class PlanThrottled(Throttled):
    """A refusal, as DRF's exception handlers know it: `detail` is a text, `wait` seconds.

    The body that DRF makes of it becomes the problem; one that a project makes stays.
    """

    def __init__(self, decision: Decision, wait: float | None) -> None:
        self.decision = decision
        self.problem = problem_of(decision)
        super().__init__(detail=self.problem["detail"])
        self.status_code = decision.status
        # Set afterwards, since DRF would add it to the text.
        self.wait: Any = None
        if decision.retry_after is not None:
            # Another throttle may have to be waited for longer.
            self.wait = max(decision.retry_after, math.ceil(wait or 0))
            self.problem["retry_after"] = self.wait


class PlanRateThrottle(BaseThrottle):
    """Takes what a request costs from all limits of its tenant's plan, or from none.

    Of the view it reads `throttle_scope`, a scope of the plan, and `throttle_cost`: a whole
    number of units, 1 by default, or a callable(request, view).
    """

    is_ratelimits_door = True

    # Until it was asked.
    decision = Decision()

    def allow_request(self, request: Request, view: APIView) -> bool:
        if said(view, request, "ratelimits_exempt") or is_spared(request):
            return True
        scope, cost = self.get_scope(request, view), self.get_cost(request, view)
        self.decision = drive(at_view(request, scope, cost))
        _publish_at_end(view)
        if not self.decision.allowed:
            _refuse(view, self.decision)
        return self.decision.allowed

    def get_scope(self, request: Request, view: APIView) -> str:
        return said(view, request, "throttle_scope") or ""

    def get_cost(self, request: Request, view: APIView) -> int:
        cost = said(view, request, "throttle_cost")
        if callable(cost):
            cost = cost(request, view)
        return 1 if cost is None else cost

    def wait(self) -> float | None:
        """Seconds to wait, rounded up; None if waiting doesn't help."""
        return self.decision.retry_after


def _publish_at_end(view: Any) -> None:
    """Have the view publish when its response is complete, and its status known.

    On this one instance, since DRF has no hook for it. Our middleware does it instead, if it
    is there.
    """
    if "ratelimits_refusal" in view.__dict__:
        return
    view.ratelimits_refusal = None
    finalize = view.finalize_response

    def finalize_and_publish(request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = finalize(request, response, *args, **kwargs)
        if view.ratelimits_refusal is not None:
            show(request, response, view.ratelimits_refusal)
        decision = decision_of(request)
        if decision is not None and not publishes_elsewhere(request):
            publish(response, decision)
        return response

    view.finalize_response = finalize_and_publish


def _refuse(view: Any, decision: Decision) -> None:
    """Have the view raise our exception, unless it has its own way."""

    def throttled(request: Any, wait: float | None) -> None:
        together = decision_of(request)
        refused = decision if together is None or together.allowed else together
        refusal = view.ratelimits_refusal = PlanThrottled(refused, wait)
        own = type(view).throttled
        # DRF's raises what would be thrown away, and translates three texts for it.
        if own.__module__ != "rest_framework.views":
            try:
                own(view, request, refusal.wait)
            except Throttled as error:
                if not _is_usual(error):
                    raise
        raise refusal

    view.throttled = throttled


def _is_usual(error: Throttled) -> bool:
    """Whether it is what DRF raises by itself."""
    wait: float | None = getattr(error, "wait", None)
    return type(error) is Throttled and error.detail == Throttled(wait).detail
