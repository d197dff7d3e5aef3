"""How calls to an upstream stand, in the words of its page."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.utils.translation import gettext as _

from ratelimits.client.gate import Gate, credentials_of
from ratelimits.client.upstreams import read_again
from ratelimits.effects import drive
from ratelimits.exceptions import RateLimitError
from ratelimits.models import UpstreamPer
from ratelimits.pacing.calls import SECOND
from ratelimits.pacing.standing import PaceStanding, Standing
from ratelimits.pacing.terms import Pace
from ratelimits.rates import Rate
from ratelimits.stores import counts_alone
from ratelimits.words import count, lasting

from .standing import LOW, Meter

# Each is a call to the store. More are looked at one by one, and so are those that come after so
# many seconds, since a store may be slow.
SHOWN, LONGEST = 10, 0.5
# Of a digest: enough to tell one from another.
LETTERS = 8


@dataclass(frozen=True)
class PaceRow:
    """One limit of a credential."""

    name: str
    rate: str
    per: str
    meter: Meter
    next_call: str
    full: str
    is_empty: bool


@dataclass(frozen=True)
class CredentialPanel:
    """What is known of the calls with one credential, which itself nobody knows."""

    digest: str
    name: str
    customer: str
    verdict: tuple[str, ...]
    is_blocked: bool
    warnings: tuple[str, ...]
    rows: tuple[PaceRow, ...]
    seen_when: str
    seen: tuple[str, ...]


@dataclass(frozen=True)
class Calls:
    """Those with all credentials that were used lately. `more` were used before these."""

    known: bool
    panels: tuple[CredentialPanel, ...] = ()
    more: int = 0
    alone: bool = False


def calls_of(slug: str) -> Calls:
    """What the page of an upstream shows. Asks the store a few times at most."""
    # As the page has them, which read them from the database a moment ago.
    read_again(slug)
    try:
        digests = credentials_of(slug)
        panels = tuple(_panels(slug, digests[:SHOWN]))
    except RateLimitError:
        return Calls(False)
    return Calls(True, panels, len(digests) - len(panels), counts_alone())


def _panels(slug: str, digests: Iterable[str]) -> Iterator[CredentialPanel]:
    end = time.monotonic() + LONGEST
    for digest in digests:
        yield panel_of(Gate(slug, digest))
        if time.monotonic() >= end:
            break


def panel_of(gate: Gate) -> CredentialPanel:
    """How one credential stands. Raises RateLimitError if that can't be told."""
    standing = drive(gate.look())
    return CredentialPanel(
        digest=gate.credential,
        name=short(gate.credential),
        customer=gate.on_behalf_of or "",
        verdict=tuple(_verdict(standing)),
        is_blocked=standing.blocked_for > 0,
        warnings=tuple(_warnings(standing)),
        rows=tuple(
            _row(pace)
            for pace in standing.paces
            if pace.pace.per == "credential" or gate.on_behalf_of
        ),
        seen_when=_seen_when(standing),
        seen=tuple(standing.seen.splitlines()),
    )


def short(digest: str) -> str:
    return digest[:LETTERS]


def _verdict(standing: Standing) -> Iterator[str]:
    used_up = [pace for pace in standing.paces if pace.next_in > 0]
    if standing.blocked_for > 0:
        told = {"time": _lasting(standing.blocked_for), "by": standing.by or _("unknown")}
        yield _("No call leaves for %(time)s, because of an answer: %(by)s.") % told
    elif used_up:
        last = max(used_up, key=lambda pace: pace.next_in)
        told = {"name": last.pace.name, "time": _lasting(last.next_in)}
        yield _("“%(name)s” is used up: the next call leaves in %(time)s.") % told
    else:
        yield _("The next call leaves at once.")
    counted = {"calls": count(standing.calls), "refused": count(standing.refused)}
    text = _(
        "Calls in this hour and the one before: %(calls)s. Refused by the API, although these "
        "limits let them leave: %(refused)s."
    )
    yield text % counted


def _warnings(standing: Standing) -> Iterator[str]:
    for pace in standing.above:
        told = {"name": pace.name, "rate": _rate(pace)}
        yield _("“%(name)s” is %(rate)s here, but answers of the API name less. Lower it.") % told
    if standing.is_too_high and not standing.above:
        yield _(
            "The configured limits look too high: the API refuses calls that they let leave. "
            "Compare them with its documentation and with the fields below, and lower them. Or "
            "else somebody uses this credential past these limits: another program, or a library "
            "that calls again by itself."
        )


def _row(found: PaceStanding) -> PaceRow:
    pace, left = found.pace, max(0, found.most - found.used)
    told = {"left": count(left), "capacity": count(found.most)}
    text = _("%(left)s of %(capacity)s left") % told
    full = _("full again in %(time)s") % {"time": _lasting(found.free_in)}
    later = _("in %(time)s") % {"time": _lasting(found.next_in)}
    return PaceRow(
        name=pace.name,
        rate=_rate(pace),
        per=str(UpstreamPer(pace.per).label),
        meter=Meter(left, found.most, found.most * LOW // 100, text),
        next_call=later if found.next_in > 0 else _("now"),
        full=full if found.free_in > 0 else _("full"),
        is_empty=found.next_in > 0,
    )


def _rate(pace: Pace) -> str:
    rate = Rate(pace.quota, pace.window // SECOND).describe()
    if pace.burst == pace.quota:
        return rate
    return _("%(rate)s, burst %(burst)s") % {"rate": rate, "burst": pace.burst}


def _seen_when(standing: Standing) -> str:
    if not standing.seen or standing.seen_ago is None:
        return ""
    return _("Fields of an answer %(time)s ago") % {"time": _lasting(standing.seen_ago)}


def _lasting(seconds: float) -> str:
    return lasting(timedelta(seconds=seconds))
