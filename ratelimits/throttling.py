"""The door for Django REST framework: one throttle class, no other setting."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rest_framework.exceptions import Throttled
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from .limiter import take
from .limits import Decision
from .publishing.problems import CONTENT_TYPE, problem_of
from .publishing.responses import publish
from .requests import decision_of, publishes_elsewhere

if TYPE_CHECKING:
    from rest_framework.views import APIView

# What people read in a browser; it shows a problem well enough in its own way.
PAGES = ("api", "html", "admin")


class Problem(dict[str, Any]):
    """A body that is ours, and so is of our content type."""


class PlanThrottled(Throttled):
    """A refusal, as DRF's exception handlers see it: `detail` is the problem, `wait` seconds."""

    def __init__(self, decision: Decision, wait: float | None) -> None:
        super().__init__(wait)
        self.decision = decision
        self.status_code = decision.status
        # Set afterwards, since DRF makes text of all that it is given.
        self.detail: Any = Problem(problem_of(decision))
        self.wait: Any = wait


class PlanRateThrottle(BaseThrottle):
    """Takes what a request costs from all limits of its tenant's plan, or from none.

    Of the view it reads `throttle_scope`, a scope of the plan, and `throttle_cost`: a whole
    number of units, 1 by default, or a callable(request, view).
    """

    is_ratelimits_door = True

    def __init__(self) -> None:
        self.decision = Decision()

    def allow_request(self, request: Request, view: APIView) -> bool:
        if declared(request, view, "ratelimits_exempt"):
            return True
        cost = declared(request, view, "throttle_cost")
        if callable(cost):
            cost = cost(request, view)
        scope = getattr(view, "throttle_scope", None) or ""
        self.decision = take(request, scope=scope, cost=1 if cost is None else cost)
        _publish_at_end(request, view)
        if not self.decision.allowed:
            _refuse(request, view, self.decision)
        return self.decision.allowed

    def wait(self) -> float | None:
        """Seconds to wait, rounded up; None if waiting doesn't help."""
        return self.decision.retry_after


def declared(request: Request, view: Any, name: str) -> Any:
    """What is said of a request at its handler, or else at its view."""
    handler = getattr(view, (request.method or "").lower(), None)
    for place in (handler, _function_below(getattr(handler, "__func__", handler)), view):
        value = getattr(place, name, None)
        if value is not None:
            # A plain function as a class attribute is bound to the view when it is read.
            return getattr(value, "__func__", value)
    return None


@lru_cache(maxsize=1024)
def _function_below(handler: Any) -> Any:
    """The function below `@api_view`, which DRF keeps only in the handler's closure."""
    if not inspect.isfunction(handler) or "func" not in handler.__code__.co_freevars:
        return None
    return inspect.getclosurevars(handler).nonlocals.get("func")


def _publish_at_end(request: Request, view: Any) -> None:
    """Have the view publish when its response is complete, and its status known.

    On this one instance: DRF has no hook for it. With our middleware, that publishes.
    """
    if publishes_elsewhere(request) or decision_of(request) is None:
        return
    finalize: Callable[..., Any] = view.finalize_response

    def finalize_and_publish(request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = finalize(request, response, *args, **kwargs)
        decision = decision_of(request)
        if decision is not None:
            publish(response, decision)
        return response

    view.finalize_response = finalize_and_publish


def _refuse(request: Request, view: Any, decision: Decision) -> None:
    """Have the view raise our exception, unless it has its own way, with the longest wait."""
    # DRF's views import DEFAULT_THROTTLE_CLASSES, and so this module, before they are ready.
    from rest_framework.views import APIView

    theirs = view.throttled if type(view).throttled is not APIView.throttled else None

    def throttled(request: Any, wait: float | None) -> None:
        if decision.retry_after is None:
            wait = None
        if theirs is not None:
            theirs(request, wait)
        raise PlanThrottled(decision, wait)

    view.throttled = throttled
    renderer = request.accepted_renderer
    if renderer.format not in PAGES:
        request.accepted_renderer = ProblemRenderer(renderer)


class ProblemRenderer(BaseRenderer):
    """Problems as JSON, whatever was asked for; anything else as the view would have."""

    charset = None

    def __init__(self, usual: Any) -> None:
        self.usual = usual
        self.media_type = CONTENT_TYPE
        self.format = usual.format

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> Any:
        if isinstance(data, Problem):
            return json.dumps(data).encode()
        response = (renderer_context or {})["response"]
        charset = f"; charset={self.usual.charset}" if self.usual.charset else ""
        response["Content-Type"] = f"{self.usual.media_type}{charset}"
        return self.usual.render(data, accepted_media_type, renderer_context)
