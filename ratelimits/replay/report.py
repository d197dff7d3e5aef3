"""What a replay found, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from django.utils.translation import gettext, ngettext

from ratelimits.management.tables import table

from .calls import Log
from .plans import Limits
from .times import SECOND
from .trying import Tried

# Of the JSON, for whoever reads it: a new number only if what was there changes its meaning.
FORMAT = 1


@dataclass(frozen=True)
class Report:
    """A log on a plan. The plans are in their order, the smallest first."""

    log: Log
    plan: str
    plans: Limits
    tried: Sequence[Tried]

    @property
    def refused(self) -> int:
        return sum(each.refused.count for each in self.tried)

    @property
    def shadowed(self) -> Counter[str]:
        return sum((each.refused.shadowed for each in self.tried), Counter[str]())

    @property
    def smallest(self) -> Counter[str | None]:
        """For how many tenants each plan is the smallest that refuses nothing."""
        return Counter(each.smallest for each in self.tried)


def as_json(report: Report) -> dict[str, Any]:
    """What --json prints; times are in UTC."""
    log, smallest = report.log, report.smallest
    first, last = log.span
    return {
        "format": FORMAT,
        "plan": report.plan,
        "from": when(first, exact=True),
        "to": when(last, exact=True),
        "calls": log.count,
        "refused": report.refused,
        "would_refuse": dict(report.shadowed),
        "lines": {
            "unreadable": log.unreadable,
            "first_unreadable": log.examples,
            "without_tenant": log.nobodys,
            "other_paths": log.elsewhere,
        },
        "plans": list(report.plans),
        "smallest": {slug: smallest[slug] for slug in report.plans},
        "smallest_none": smallest[None],
        "tenants": [_tenant(each) for each in report.tried],
    }


def _tenant(tried: Tried) -> dict[str, Any]:
    refused = tried.refused
    return {
        "tenant": tried.tenant,
        "calls": len(tried.calls),
        "refused": refused.count,
        "first": when(refused.first, exact=True) if refused.count else None,
        "last": when(refused.last, exact=True) if refused.count else None,
        "by_minute": {when(at): count for at, count in sorted(refused.minutes.items())},
        "by_limit": dict(refused.limits),
        "would_refuse": dict(refused.shadowed),
        "smallest_plan": tried.smallest,
    }


def lines(report: Report, most: int) -> Iterator[str]:
    """The report as text, with so many tenants of those that are refused."""
    log = report.log
    first, last = log.span
    yield gettext("%(calls)s of %(tenants)s, from %(first)s to %(last)s UTC") % {
        "calls": _calls(log.count),
        "tenants": _tenants(len(log.tenants)),
        "first": when(first),
        "last": when(last),
    }
    refused = [each for each in report.tried if each.refused.count]
    yield gettext("On the plan %(plan)s, %(calls)s of %(tenants)s would have been refused.") % {
        "plan": report.plan,
        "calls": _share(report.refused, log.count),
        "tenants": _tenants(len(refused)),
    }
    for name, count in report.shadowed.items():
        told = gettext("The limit %(name)s, in shadow, would refuse %(calls)s if it were enforced.")
        yield told % {"name": name, "calls": _calls(count)}
    if refused:
        yield ""
        yield from table([_head(), *map(_row, refused[:most])])
    if len(refused) > most:
        yield gettext("... and %s more; --top shows more of them.") % _tenants(len(refused) - most)
    yield ""
    yield from _smallest(report)
    yield from _left_out(log)


def _smallest(report: Report) -> Iterator[str]:
    yield gettext("The smallest plan that would have refused nothing:")
    counts = report.smallest
    rows = [(f"  {slug}", _tenants(counts[slug])) for slug in report.plans]
    if counts[None]:
        rows.append((f"  {gettext('none of them')}", _tenants(counts[None])))
    yield from table(rows)


def _left_out(log: Log) -> Iterator[str]:
    if log.unreadable:
        told = ngettext(
            "%(count)s line can't be read: %(places)s",
            "%(count)s lines can't be read, the first of them: %(places)s",
            log.unreadable,
        )
        yield told % {"count": f"{log.unreadable:,}", "places": ", ".join(log.examples)}
    if log.nobodys:
        yield gettext("Of no tenant, and left out: %s") % _calls(log.nobodys)
    if log.elsewhere:
        yield gettext("On other paths, and left out: %s") % _calls(log.elsewhere)


def _head() -> tuple[str, ...]:
    return (
        gettext("tenant"),
        gettext("calls"),
        gettext("refused"),
        gettext("first"),
        gettext("last"),
        gettext("worst minute"),
        gettext("limits"),
        gettext("would need"),
    )


def _row(tried: Tried) -> tuple[str, ...]:
    refused = tried.refused
    worst, count = max(refused.minutes.items(), key=lambda entry: (entry[1], -entry[0]))
    return (
        tried.tenant,
        f"{len(tried.calls):,}",
        _share(refused.count, len(tried.calls), words=False),
        when(refused.first),
        when(refused.last),
        f"{when(worst)[:-3]} ({count:,})",
        ", ".join(sorted(refused.limits)),
        tried.smallest or gettext("none of them"),
    )


def when(at: int, exact: bool = False) -> str:
    """A time in UTC, to the second or with its fraction as in JSON."""
    moment = datetime.fromtimestamp(at // SECOND, timezone.utc).replace(tzinfo=None)
    if exact:
        return f"{moment.isoformat()}.{at % SECOND:06}Z"
    return moment.isoformat(" ")


def _share(count: int, total: int, words: bool = True) -> str:
    said = _calls(count) if words else f"{count:,}"
    return f"{said} ({count / total:.1%})" if count else said


def _calls(count: int) -> str:
    return ngettext("%s call", "%s calls", count) % f"{count:,}"


def _tenants(count: int) -> str:
    return ngettext("%s tenant", "%s tenants", count) % f"{count:,}"
