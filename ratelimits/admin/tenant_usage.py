"""What tenants did in the last hour, as the list and the pages show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ratelimits import usage
from ratelimits.catalog import Caller
from ratelimits.exceptions import StoreUnavailable
from ratelimits.models import Tenant
from ratelimits.usage import Counts
from ratelimits.words import count

from .base import ModelAdmin

MINUTES = 60
# So many who call most are looked through, for so many to show.
SEEN, SHOWN = 50, 3


@dataclass(frozen=True)
class Lately:
    """One caller's last hour: all of it, what each limit refused, and whether it was ever seen."""

    total: Counts
    by_limit: Mapping[str, Counts]
    seen: bool
    days: int

    @property
    def sentence(self) -> str:
        if not self.seen:
            text = ngettext(
                "Not seen in traffic within the last day.",
                "Not seen in traffic within the last %(days)s days.",
                self.days,
            )
            return text % {"days": self.days}
        if self.total.at_least:
            text = _("Requests in the last hour: at least %(requests)s, refused: %(refused)s.")
        else:
            text = _("Requests in the last hour: %(requests)s, refused: %(refused)s.")
        refused = count(self.total.refused)
        return text % {"requests": count(self.total.requests), "refused": refused}

    def refused_by(self, name: str, in_shadow: bool) -> str:
        """What a limit refused, or would have."""
        counts = self.by_limit.get(name, Counts())
        if in_shadow:
            return _("%s would have been") % count(counts.shadow)
        return count(counts.refused)


def lately(caller: Caller) -> Lately | None:
    """What a caller did; None if nobody can tell now."""
    kind = "address" if caller.tenant is None else "tenant"
    try:
        found = usage.history(caller.tenant or caller.address or "", minutes=MINUTES, kind=kind)
    except StoreUnavailable:
        return None
    total, by_limit = Counts(), dict[str, Counts]()
    for point in found.minutes:
        total = total.plus(point.total)
        for line, counts in point.lines.items():
            by_limit[line.limit] = by_limit.get(line.limit, Counts()).plus(counts)
    seen = any(point.total.requests for point in (*found.minutes, *found.hours))
    return Lately(total, by_limit, seen, len(found.hours) // 24)


def seen_without_row() -> list[str]:
    """The keys of some tenants that call most and have no row; none if nobody can tell."""
    try:
        callers = usage.top(SEEN).callers
    except StoreUnavailable:
        return []
    keys = [used.owner.key for used in callers if used.owner.kind == "tenant"]
    rows = set(Tenant.objects.filter(key__in=keys).values_list("key", flat=True))
    return [key for key in keys if key not in rows][:SHOWN]


class TenantList(ChangeList):
    """The list, which knows what each tenant on its page did. One call for all of them."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        tenants: list[Any] = list(self.result_list)
        keys = [tenant.key for tenant in tenants]
        try:
            found: Sequence[Counts | None] = usage.recent(keys, MINUTES)
        except StoreUnavailable:
            found = [None] * len(tenants)
        for tenant, counts in zip(tenants, found, strict=True):
            tenant.lately = counts


class UsageAdmin(ModelAdmin[Tenant]):
    """Adds the columns."""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return TenantList

    @admin.display(description=gettext_lazy("last hour"))
    def requests_lately(self, tenant: Any) -> str:
        counts: Counts | None = tenant.lately
        return _("unavailable") if counts is None else count(counts.requests)

    @admin.display(description=gettext_lazy("refused"))
    def refused_lately(self, tenant: Any) -> str:
        counts: Counts | None = tenant.lately
        return _("unavailable") if counts is None else count(counts.refused)
