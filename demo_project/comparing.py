"""One limit, counted in different ways, to be compared over plain HTTP.

Whoever calls says who they are, and nobody checks: the experiments make callers up. A real
API finds out as tenants.py does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import wraps

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.http import http_date

from ratelimits.decorators import ratelimit
from ratelimits.limits import Decision

View = Callable[..., HttpResponse]


def caller(request: HttpRequest) -> str:
    return request.headers.get("X-API-Key") or request.GET.get("caller") or "nobody"


def everyone(request: HttpRequest) -> str:
    return "everyone"


def _answer(request: HttpRequest) -> HttpResponse:
    decision: Decision = request.ratelimit  # type: ignore[attr-defined]
    limit = decision.outcomes[0].limit
    return JsonResponse({"limit": str(limit.rate), "algorithm": limit.algorithm})


@ratelimit("10/s", by=caller, algorithm="fixed_window", name="fixed")
def fixed(request: HttpRequest) -> HttpResponse:
    return _answer(request)


@ratelimit("10/s", by=caller, algorithm="sliding_log", name="sliding")
def sliding(request: HttpRequest) -> HttpResponse:
    return _answer(request)


@ratelimit("10/s", by=caller, algorithm="token_bucket", name="bucket")
def bucket(request: HttpRequest) -> HttpResponse:
    return _answer(request)


@ratelimit("10/s", by=everyone, name="global")
def shared(request: HttpRequest) -> HttpResponse:
    return _answer(request)


@ratelimit("500/d", by=caller, name="daily-bucket")
def daily_bucket(request: HttpRequest) -> HttpResponse:
    """A rate so slow that the store still knows the first of many callers after the last."""
    return _answer(request)


@ratelimit("500/d", by=caller, algorithm="sliding_log", name="daily-log")
def daily_log(request: HttpRequest) -> HttpResponse:
    return _answer(request)


def _in_seconds(wait: float) -> tuple[str, str]:
    return "Retry-After", str(math.ceil(wait))


def _as_date(wait: float) -> tuple[str, str]:
    return "Retry-After", http_date(math.ceil(time.time() + wait))


def _as_epoch(wait: float) -> tuple[str, str]:
    return "X-RateLimit-Reset", str(math.ceil(time.time() + wait))


def _in_milliseconds(wait: float) -> tuple[str, str]:
    return "Retry-After-Ms", str(math.ceil(wait * 1000))


WAYS = {
    "seconds": _in_seconds,
    "date": _as_date,
    "epoch": _as_epoch,
    "milliseconds": _in_milliseconds,
}


def _as_others_write_it(view: View) -> View:
    """Tells the wait of a refusal in one way only, as some API or other does."""

    @wraps(view)
    def inner(request: HttpRequest, way: str) -> HttpResponse:
        if way not in WAYS:
            raise Http404(f"Choose one of {', '.join(WAYS)}.")
        response = view(request)
        decision: Decision = request.ratelimit  # type: ignore[attr-defined]
        # With nothing decided, the middleware publishes nothing of ours.
        request.ratelimit = Decision()  # type: ignore[attr-defined]
        if decision.wait is None:
            return response
        name, value = WAYS[way](decision.wait.total_seconds())
        return JsonResponse({"error": "too many requests"}, status=429, headers={name: value})

    return inner


@_as_others_write_it
@ratelimit("1/3s", by=caller, name="written")
def written(request: HttpRequest) -> HttpResponse:
    return _answer(request)
