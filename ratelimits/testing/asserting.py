"""Whether a response is a refusal, with what there is to say about it if a test fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ratelimits.client.headers import parse_quota
from ratelimits.edits import shared
from ratelimits.requests import decision_of

VIOLATED = "violated-policies"
# As much of somebody else's answer as is told.
MOST = 200


def assert_limited(response: Any, limit: str | None = None) -> None:
    """Fails unless the response says that a limit was used up; with a name, that this one was.

    For responses of Django's and DRF's clients and views, of requests and of httpx.
    """
    __tracebackhide__ = True
    names = violated(response)
    if response.status_code not in (429, 503):
        raise AssertionError(f"Not limited: the answer is {response.status_code}. {_why(response)}")
    if names is None:
        raise AssertionError(_elsewhere(response))
    if not names:
        raise AssertionError("Not limited: the store was away, for which the answer is 503.")
    if limit is not None and limit not in names:
        raise AssertionError(f'Limited by {_quoted(names)}, not by "{limit}".')


def assert_not_limited(response: Any) -> None:
    """Fails if the response is a refusal: whoever else answers 429 has limited the caller, too.

    For the same responses as assert_limited().
    """
    __tracebackhide__ = True
    names = violated(response)
    if response.status_code == 429 and names is None:
        raise AssertionError(_elsewhere(response))
    if response.status_code in (429, 503) and names is not None:
        by = f"by {_quoted(names)}" if names else "since the store was away"
        wait = response.headers.get("Retry-After")
        told = f"Retry-After is {wait}" if wait else "It would never pass"
        detail = str(_problem(response).get("detail", ""))
        raise AssertionError(f"Limited {by}. {detail} {told}.".replace("  ", " "))


def violated(response: Any) -> list[str] | None:
    """The names of the limits that refused, as far as a response tells; None: no refusal of ours.

    Empty if it was the store that was away.
    """
    problem = _problem(response)
    if VIOLATED in problem:
        return [str(name) for name in problem[VIOLATED]]
    request = getattr(response, "wsgi_request", None) or getattr(response, "asgi_request", None)
    decision = None if request is None else decision_of(request)
    if decision is not None:
        return None if decision.allowed else [outcome.name for outcome in decision.violated]
    if response.status_code != 429:
        return None
    # A page for a browser, or an answer of the project's own.
    empty = [quota.name for quota in parse_quota(response.headers) if quota.remaining == 0]
    return empty or None


def _problem(response: Any) -> Mapping[str, Any]:
    """The body of a refusal; empty for any other one."""
    # One of DRF's views need not be rendered yet.
    data = getattr(response, "data", None)
    if data is None and "json" in (response.headers.get("Content-Type") or ""):
        try:
            data = json.loads(response.content)
        except ValueError:
            return {}
    return data if isinstance(data, Mapping) else {}


def _why(response: Any) -> str:
    """Why nobody was refused."""
    if shared.mode != "enforce":
        return f'The mode of all limits is "{shared.mode}".'
    quotas = parse_quota(response.headers)
    if not quotas:
        return "No limit has counted it: has its view a door, and its caller a plan?"
    left = [f'"{quota.name}" has {quota.remaining} of {quota.limit} left' for quota in quotas]
    return f"{', '.join(left)}."


def _elsewhere(response: Any) -> str:
    rendered = getattr(response, "is_rendered", True)
    told = getattr(response, "content" if rendered else "data", b"")
    shown = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
    return f"Nothing of ratelimits answered {response.status_code}: {shown[:MOST]!r}"


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
