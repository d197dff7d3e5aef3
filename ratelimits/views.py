"""Views to include: `path("rate_limit", ratelimits.views.rate_limit)`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import View

from .budgets import budget_of
from .decorators import exempt


class RateLimit(View):
    """Tells callers all their limits, and how full those are. To ask costs nothing."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return JsonResponse(budget_of(request), headers={"Cache-Control": "private, no-store"})


# Callers may be known by a key rather than as users, and those who are not have limits too.
rate_limit = login_not_required(exempt(RateLimit.as_view()))
