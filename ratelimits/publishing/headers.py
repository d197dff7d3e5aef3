"""The header fields that tell a caller its budget.

`RateLimit-Policy` and `RateLimit` follow draft-ietf-httpapi-ratelimit-headers-11. The older
trio is that of its revisions up to 06; the one with `X-` was never specified.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ratelimits.algorithms.base import ceil_div
from ratelimits.conf import conf
from ratelimits.limits import SECOND, Decision, Limit, Outcome

from .fields import integer, item, printable, string, unique

# The fields that tell how much is left; the policy does not.
AMOUNTS = frozenset(
    ["RateLimit"]
    + [f"{x}RateLimit-{part}" for x in ("", "X-") for part in ("Limit", "Remaining", "Reset")]
)


Listed = tuple[tuple[int, str], ...]


class Policies(NamedTuple):
    """How a set of limits is called and shown: all that stays the same between responses.

    `names` has one for each limit, in order. `listed` has, for each that is published, its
    position and its serialized name. `field` is empty if none is.
    """

    names: tuple[str, ...]
    listed: Listed
    field: str


def headers_of(decision: Decision) -> dict[str, str]:
    """The fields that the setting HEADERS asks for, and Retry-After if it is a refusal."""
    headers: dict[str, str] = {}
    outcomes = decision.outcomes
    policies = policies_of(outcomes)
    if policies.listed:
        wanted = conf.HEADERS
        # One name as it is: "ratelimit" is part of those of the older fields.
        wanted = (wanted,) if isinstance(wanted, str) else wanted
        if "ratelimit" in wanted:
            headers["RateLimit-Policy"] = policies.field
            headers["RateLimit"] = _amounts(outcomes, policies.listed)
        if "ratelimit-legacy" in wanted or "x-ratelimit" in wanted:
            _add_trios(headers, _closest(outcomes, policies.listed), wanted)
    if not decision.allowed and decision.retry_after is not None:
        headers["Retry-After"] = str(decision.retry_after)
    return headers


def policies_of(outcomes: Sequence[Outcome]) -> Policies:
    """The names of the limits of a decision, and their policies."""
    return policies_for(tuple([outcome.limit for outcome in outcomes]))


def is_exhausted(decision: Decision) -> bool:
    """Whether any limit that is listed has r = 0."""
    outcomes = decision.outcomes
    return any(outcomes[i].remaining <= 0 for i, _ in policies_of(outcomes).listed)


def shown_reset(outcome: Outcome) -> int:
    """`t`, in whole seconds, rounded up: a client that obeys is never too early."""
    return integer(-(-outcome.reset_us // SECOND))


# The text of a policy should not vary (section 3 of the draft), and is most of the work.
@lru_cache(maxsize=4096)
def policies_for(limits: tuple[Limit, ...]) -> Policies:
    """See policies_of()."""
    listed = [i for i, limit in enumerate(limits) if _is_listed(limit)]
    # Those that callers see come first, so that no other limit can alter their names.
    order = listed + [i for i in range(len(limits)) if i not in listed]
    names = dict(zip(order, unique(printable(limits[i].name) for i in order), strict=True))
    labels = {i: string(names[i]) for i in listed}
    return Policies(
        names=tuple(names[i] for i in range(len(limits))),
        listed=tuple(labels.items()),
        field=", ".join(policy_of(limits[i], label) for i, label in labels.items()),
    )


def policy_of(limit: Limit, label: str) -> str:
    """A limit as `RateLimit-Policy` has it; `label` is its serialized name."""
    return item(label, _terms(limit))


def _is_listed(limit: Limit) -> bool:
    # The draft has no way to say "unlimited".
    return limit.is_published and not limit.rate.is_unlimited


def _terms(limit: Limit) -> dict[str, int]:
    """A policy's parameters. A calendar month has no `w`: its length is not fixed."""
    terms = {"q": limit.quota}
    if not limit.rate.is_month:
        terms["w"] = limit.rate.window
    if limit.capacity != limit.quota:
        # Parameters of one's own should carry a prefix (section 3.1 of the draft).
        terms["ratelimits-burst"] = limit.capacity
    return terms


def _amounts(outcomes: Sequence[Outcome], listed: Listed) -> str:
    """The value of `RateLimit`. Not by way of `item`, because every response pays for it."""
    if len(listed) == 1:
        # As most have it.
        ((i, label),) = listed
        outcome = outcomes[i]
        return f"{label};r={integer(outcome.remaining)};t={shown_reset(outcome)}"
    return ", ".join([_amounts(outcomes, (one,)) for one in listed])


def _closest(outcomes: Sequence[Outcome], listed: Listed) -> Outcome:
    """The limit to show to those who understand one only."""
    if len(listed) == 1:
        return outcomes[listed[0][0]]
    return min((outcomes[i] for i, _ in listed), key=_slack)


def _slack(outcome: Outcome) -> tuple[float, int]:
    """The share that is left; below any share, and the lower the longer, a refused one's wait."""
    if outcome.refuses:
        return -math.inf if outcome.wait_us is None else -outcome.wait_us, 0
    capacity = outcome.limit.capacity
    return outcome.remaining / capacity if capacity else 0.0, -outcome.reset_us


@lru_cache(maxsize=4096)
def _capacity(limit: Limit) -> str:
    return str(integer(limit.capacity))


def _add_trios(headers: dict[str, str], outcome: Outcome, wanted: Sequence[str]) -> None:
    """Add the older fields. Their limit is the capacity, so that no more than it is left."""
    limit = _capacity(outcome.limit)
    remaining = str(integer(outcome.remaining))
    if "ratelimit-legacy" in wanted:
        headers["RateLimit-Limit"] = limit
        headers["RateLimit-Remaining"] = remaining
        headers["RateLimit-Reset"] = str(shown_reset(outcome))
    if "x-ratelimit" in wanted:
        now = int(time.time() * SECOND)
        headers["X-RateLimit-Limit"] = limit
        headers["X-RateLimit-Remaining"] = remaining
        headers["X-RateLimit-Reset"] = str(integer(ceil_div(now + outcome.reset_us, SECOND)))
