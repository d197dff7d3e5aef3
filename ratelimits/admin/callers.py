"""Callers as pages show them: by the project's label, the row's name, or at least their key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ratelimits.limits import Owner
from ratelimits.models import Tenant

from .labels import tenant_label
from .viewers import Viewer


@dataclass(frozen=True)
class Shown:
    """A caller. `url` is its row's page; `key` is to be looked for, if it has none."""

    name: str
    what: str
    label: SafeString | None = None
    url: str = ""
    key: str = ""


def callers(owners: Iterable[Owner], viewer: Viewer) -> Mapping[Owner, Shown]:
    """How to show each of them. One query for all."""
    each = list(dict.fromkeys(owners))
    keys = [owner.key for owner in each if owner.kind == "tenant"]
    rows = {row.key: row for row in Tenant.objects.filter(key__in=keys).only("key", "name")}
    return {owner: _shown(owner, rows.get(owner.key), viewer) for owner in each}


def _shown(owner: Owner, row: Tenant | None, viewer: Viewer) -> Shown:
    if owner.kind == "address":
        return Shown(owner.key or _("unknown"), _("address"), key=owner.key)
    if owner.kind != "tenant":
        return Shown(owner.key or _("unknown"), _("counted by"))
    label = tenant_label(owner.key)
    if row is None:
        return Shown(owner.key, _("no row"), label, key=owner.key)
    return Shown(str(row), "", label, url=viewer.page_of(row))
