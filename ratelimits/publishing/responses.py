"""Responses: the fields on any of them, and the one that refuses."""

from __future__ import annotations

import json
import time

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import parse_http_date
from django.utils.translation import ngettext

from ratelimits.algorithms.base import ceil_div
from ratelimits.conf import conf
from ratelimits.effects import given
from ratelimits.limits import Decision

from .headers import AMOUNTS, headers_of, is_exhausted
from .problems import CONTENT_TYPE, problem_of

TEMPLATE = "ratelimits/429.html"


def publish(response: HttpResponseBase, decision: Decision) -> None:
    """Put a decision's fields on a response, whatever its status; twice is the same as once.

    A refusal may not be stored (RFC 6585, section 4). What a view said about Retry-After
    stays, unless the refusal has to wait longer. A view that asked, was refused and answers
    even so has refused nobody.
    """
    fields = headers_of(decision)
    if response.status_code < 400:
        fields.pop("Retry-After", None)
    if 300 <= response.status_code < 400 and is_exhausted(decision):
        # A client that obeys r = 0 would not follow the redirect (section 6 of the draft).
        for name in AMOUNTS & fields.keys():
            del fields[name]
            response.headers.pop(name, None)
    for name, value in fields.items():
        if name == "Retry-After":
            value = _longer(response.headers.get(name), value)
        response.headers[name] = value
    if not decision.allowed and response.status_code >= 400:
        patch_cache_control(response, no_store=True)


def refusal(request: HttpRequest, decision: Decision) -> HttpResponse:
    """The response for a request that was refused: the project's own, a page, or a problem.

    Projects' templates and the callable of the setting RESPONSE may query the database; an
    async caller goes through sync_to_async. A callable that gives None leaves it to us.
    """
    own = conf.imported("RESPONSE")
    response: HttpResponse | None = given(own(request, decision)) if own else None
    if response is None:
        response = page(request, decision) if is_browser(request) else _problem(decision)
        patch_vary_headers(response, ["Accept"])
    publish(response, decision)
    # Also with a status of the project's own that caches like to keep.
    patch_cache_control(response, no_store=True)
    return response


def _longer(theirs: str | None, ours: str) -> str:
    """The later of two values of Retry-After; theirs too if it makes no sense to us."""
    if not theirs:
        return ours
    try:
        return theirs if _seconds(theirs) >= int(ours) else ours
    except ValueError:
        return theirs


def _seconds(retry_after: str) -> float:
    """Seconds from now. Raises ValueError for neither form of RFC 9110, section 10.2.3."""
    value = retry_after.strip()
    if value.isdecimal():
        return int(value)
    return parse_http_date(value) - time.time()


def is_browser(request: HttpRequest) -> bool:
    """Whether a page is preferred. Everybody else is content with JSON, or gets it anyway."""
    html = _quality(request, "text/html")
    return html > max(_quality(request, CONTENT_TYPE), _quality(request, "application/json"))


def _quality(request: HttpRequest, media_type: str) -> float:
    """The q of the Accept field for a media type, 0 if it is not accepted."""
    accepted = request.accepted_type(media_type)
    return 0.0 if accepted is None else float(accepted.quality)


def _problem(decision: Decision) -> HttpResponse:
    body = json.dumps(problem_of(decision))
    return HttpResponse(body, content_type=CONTENT_TYPE, status=decision.status)


def page(request: HttpRequest, decision: Decision) -> HttpResponse:
    """A refusal for people; a problem if there is no engine for templates."""
    problem = problem_of(decision)
    wait = problem["retry_after"]
    context = {
        "problem": problem,
        "decision": decision,
        "wait": None if wait is None else _in_words(wait),
    }
    try:
        return HttpResponse(render_to_string(TEMPLATE, context, request), status=decision.status)
    except TemplateDoesNotExist:
        # A project without templates of Django's kind: an API, whose callers can read JSON.
        return _problem(decision)


def _in_words(seconds: int) -> str:
    """A wait for people, rounded up so that it is never too short."""
    if seconds <= 120:
        return ngettext("%(n)d second", "%(n)d seconds", seconds) % {"n": seconds}
    minutes = ceil_div(seconds, 60)
    if minutes <= 120:
        return ngettext("%(n)d minute", "%(n)d minutes", minutes) % {"n": minutes}
    hours = ceil_div(minutes, 60)
    if hours <= 48:
        return ngettext("%(n)d hour", "%(n)d hours", hours) % {"n": hours}
    days = ceil_div(hours, 24)
    return ngettext("%(n)d day", "%(n)d days", days) % {"n": days}
