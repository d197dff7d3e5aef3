"""Whether a response is a refusal, with what there is to say about it if a test fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ratelimits.client.headers import parse_quota
from ratelimits.edits import shared
from ratelimits.limits import Decision, Outcome
from ratelimits.receipts.urns import found_in
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
    decision = _decision(response)
    if decision is not None and not decision.allowed:
        return [outcome.name for outcome in decision.violated]
    problem = _problem(response)
    # Others may have such a list, too, and a project may pass on what they said.
    if VIOLATED in problem and found_in(str(problem.get("instance"))):
        return [str(name) for name in problem[VIOLATED]]
    if response.status_code != 429 or _request(response) is not None:
        return None
    # A page for a browser, or an answer of the project's own.
    empty = [quota.name for quota in parse_quota(response.headers) if quota.remaining == 0]
    return empty or None


def _request(response: Any) -> Any:
    """What was asked, which clients of Django and DRF keep; None for other responses."""
    return getattr(response, "wsgi_request", None) or getattr(response, "asgi_request", None)


def _decision(response: Any) -> Decision | None:
    request = _request(response)
    return None if request is None else decision_of(request)


def _problem(response: Any) -> Mapping[str, Any]:
    """The body of a refusal; empty for any other one."""
    # One of DRF's views need not be rendered yet.
    data = getattr(response, "data", None)
    if data is None and "json" in (response.headers.get("Content-Type") or ""):
        try:
            data = json.loads(_content(response))
        except ValueError:
            return {}
    return data if isinstance(data, Mapping) else {}


def _content(response: Any) -> bytes:
    """The body; empty for a stream that has not been read, or whose chunks are gone."""
    try:
        content: bytes = response.content
    except (AttributeError, RuntimeError):
        return b""
    return content


def _why(response: Any) -> str:
    """Why nobody was refused."""
    if shared.mode != "enforce":
        return f'The mode of all limits is "{shared.mode}".'
    left = _left(response)
    if not left:
        return "No limit has counted it: has its view a door, and its caller a plan?"
    return f"{', '.join(left)}."


def _left(response: Any) -> list[str]:
    """What is left of each limit that has counted it."""
    decision = _decision(response)
    if decision is not None:
        return [_told(outcome) for outcome in decision.outcomes]
    quotas = parse_quota(response.headers)
    return [f'"{quota.name}" has {quota.remaining} of {quota.limit} left' for quota in quotas]


def _told(outcome: Outcome) -> str:
    limit = outcome.limit
    shadow = ", and is in shadow" if limit.is_shadow else ""
    return f'"{limit.name}" has {outcome.remaining} of {limit.capacity} left{shadow}'


def _elsewhere(response: Any) -> str:
    rendered = getattr(response, "is_rendered", True)
    told = _content(response) if rendered else getattr(response, "data", b"")
    shown = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
    return f"Nothing of ratelimits answered {response.status_code}: {shown[:MOST]!r}"


def _quoted(names: list[str]) -> str:
    # The older fields do not say which one they are about.
    return ", ".join(f'"{name}"' if name else "one that is not named" for name in names)
