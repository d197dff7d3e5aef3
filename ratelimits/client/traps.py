"""Terms of upstreams that are allowed, and do something else than they seem to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from fractions import Fraction

from ratelimits.pacing.terms import Pace, Terms
from ratelimits.texts import gettext as _
from ratelimits.words import count, lasting

# Seconds that nobody who looks at a page waits for.
LONG = 60
# Statuses of a server that failed, whatever it had done by then.
FAILED = frozenset({500, 502, 503, 504})


def mistakes(terms: Terms) -> Iterator[str]:
    """What can't be meant so."""
    own = [pace for pace in terms.paces if pace.per == "credential"]
    shares = [pace for pace in terms.paces if pace.per == "tenant"]
    if not terms.paces:
        yield _("It has no limits: calls are held back only once an answer has refused one.")
    elif not own:
        yield _(
            "All its limits are shares of customers: together they can use a credential up, and "
            "calls in nobody's name are not held back."
        )
    yield from _shares(shares, own)


def risks(terms: Terms) -> Iterator[str]:
    """What may be meant so, by those who know what follows."""
    for pace in terms.paces:
        if pace.kind == "bucket":
            yield _(
                "“%(name)s” is a bucket: if they count in windows, up to %(most)s units can leave "
                "within one, and they refuse some. Choose a window, unless they say that it is a "
                "bucket."
            ) % {"name": pace.name, "most": count(pace.quota + pace.burst)}
    failed = ", ".join(map(str, sorted(terms.statuses & FAILED)))
    if failed:
        yield _(
            "With %(statuses)s taken for refusals, a call that was answered so and told to wait is "
            "sent again whatever its method: a POST that was processed is processed twice."
        ) % {"statuses": failed}
    if not terms.guard:
        yield _(
            "Without a guard, a call that is faster on its way than those before it arrives too "
            "early, and is refused. 0.05 s is enough for most."
        )
    if terms.max_wait > LONG:
        yield _(
            "Calls may wait for %(time)s. Who calls from a view keeps a browser waiting for as "
            "long: lower it, and let a queue take what has to wait longer."
        ) % {"time": lasting(timedelta(seconds=terms.max_wait))}


def _shares(shares: Sequence[Pace], own: Sequence[Pace]) -> Iterator[str]:
    for share in shares:
        lower = next((pace for pace in own if _rate(pace) <= _rate(share)), None)
        if lower is not None:
            yield _(
                "“%(share)s” lets one customer have all of “%(whole)s”, so that the others can get "
                "nothing. Lower it."
            ) % {"share": share.name, "whole": lower.name}


def _rate(pace: Pace) -> Fraction:
    return Fraction(pace.quota, pace.window)
