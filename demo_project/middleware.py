from __future__ import annotations

import os
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse


class WhoServed:
    """Tells which worker answered, and between which moments of its clock.

    So that one can see that several workers share a count, and the experiments can tell a
    request that came in time from one that was held up on its way.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.time()
        response = self.get_response(request)
        response["X-Demo-Worker"] = str(os.getpid())
        response["X-Demo-Clock"] = f"{started:.6f} {time.time():.6f}"
        return response
