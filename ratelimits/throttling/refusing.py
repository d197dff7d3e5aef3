"""What a throttle of ours does to the view that it stands at."""

from __future__ import annotations

import math
from typing import Any

from rest_framework.exceptions import Throttled

from ratelimits.limits import Decision
from ratelimits.publishing.problems import problem_of
from ratelimits.publishing.responses import publish
from ratelimits.rendering import show
from ratelimits.requests import decision_of, publishes_elsewhere

from .passes import let_pass

# Of an answer with another status nobody was refused.
REFUSALS = (429, 503)


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


def publish_at_end(view: Any) -> None:
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
        if response.status_code not in REFUSALS:
            let_pass(request)
        if view.ratelimits_refusal is not None:
            show(request, response, view.ratelimits_refusal)
        decision = decision_of(request)
        if decision is not None and not publishes_elsewhere(request):
            publish(response, decision)
        return response

    view.finalize_response = finalize_and_publish


def refuse(view: Any, decision: Decision) -> None:
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
