"""The body of a refusal: a problem document (RFC 9457)."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ratelimits.conf import conf
from ratelimits.limits import Decision, Outcome
from ratelimits.receipts import receipt_of

from .fields import integer
from .headers import policies_of, shown_reset

CONTENT_TYPE = "application/problem+json"
# draft-ietf-httpapi-ratelimit-headers-11, section 5. Clients compare these as they are.
REGISTRY = "https://iana.org/assignments/http-problem-types#"
QUOTA_EXCEEDED = "quota-exceeded"
REDUCED_CAPACITY = "temporary-reduced-capacity"


def problem_of(decision: Decision) -> dict[str, Any]:
    """The problem document of a refusal, ready for JSON.

    `retry_after` is in whole seconds, and null if the request can never pass. A 429 also has
    `limit` (units per window), `remaining` and `reset` (seconds) of the limit that decides. The
    limit for everyone has none: how much the service can do is nobody's business (section 8.2).
    """
    deciding = decision.deciding
    problem: dict[str, Any] = {**_kind(decision.status), "detail": _detail(decision)}
    problem["instance"] = receipt_of(decision)
    problem["violated-policies"] = violated_names(decision)
    if deciding is not None and deciding.limit.per != "everyone":
        problem["limit"] = deciding.limit.quota
        problem["remaining"] = integer(deciding.remaining)
        problem["reset"] = shown_reset(deciding)
    problem["retry_after"] = decision.retry_after
    problem["cost"] = decision.cost if deciding is None else deciding.cost
    problem["retryable"] = decision.retryable
    return problem


def violated_names(decision: Decision) -> list[str]:
    """The names of the violated limits, as the header fields write them."""
    names = policies_of(decision.outcomes).names
    return [name for name, outcome in zip(names, decision.outcomes, strict=True) if outcome.refuses]


def _kind(status: int) -> dict[str, Any]:
    """Type, title and status; the title as it is registered (section 10.2 of the draft)."""
    if status == 429:
        return {"type": _type(QUOTA_EXCEEDED), "title": _("Quota Exceeded"), "status": 429}
    title = _("Temporary Reduced Capacity")
    return {"type": _type(REDUCED_CAPACITY), "title": title, "status": status}


def _type(name: str) -> str:
    # A project's own may be lazy, such as that of reverse_lazy.
    return str(conf.PROBLEM_TYPES.get(name) or REGISTRY + name)


def _detail(decision: Decision) -> str:
    """What happened and what to do about it, for the people who read the client's log."""
    deciding = decision.deciding
    if decision.status == 429 and deciding is not None:
        return _never(deciding) if deciding.never else _limit_is(deciding)
    return _("The service can't take this request at the moment. Try again later.")


def _limit_is(outcome: Outcome) -> str:
    rate = {"rate": outcome.limit.rate.describe()}
    if outcome.limit.per == "address":
        return _("Limit is %(rate)s for this address.") % rate
    return _("Limit is %(rate)s for this key.") % rate


def _never(outcome: Outcome) -> str:
    """Why a request can't pass however long it waits."""
    limit = outcome.limit
    if limit.per == "everyone":
        return _("This request costs more than the service takes at once.")
    if limit.quota == 0:
        if limit.per == "address":
            return _("No such requests are allowed for this address.")
        return _("No such requests are allowed for this key.")
    return ngettext(
        "This request costs %(cost)d, but the limit of %(rate)s allows no more than "
        "%(most)d unit at once.",
        "This request costs %(cost)d, but the limit of %(rate)s allows no more than "
        "%(most)d units at once.",
        limit.capacity,
    ) % {"cost": outcome.cost, "rate": limit.rate.describe(), "most": limit.capacity}
