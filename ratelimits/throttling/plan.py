"""The throttle of plans, which needs no other setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from ratelimits.algorithms import Operation
from ratelimits.flow import at_view, operate
from ratelimits.limits import Decision
from ratelimits.places import is_spared, said

from .passes import ask, note_refused
from .refusing import publish_at_end, refuse

if TYPE_CHECKING:
    # DRF's views import DEFAULT_THROTTLE_CLASSES, and so this module, before they are ready.
    from rest_framework.views import APIView


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
        self.decision = ask(
            request,
            peek=lambda: operate(Operation.PEEK, request, scope, cost),
            take=lambda: at_view(request, scope, cost),
        )
        publish_at_end(view)
        if not self.decision.allowed:
            note_refused(request)
            refuse(view, self.decision)
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
