"""What a table of counts should be like."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from ratelimits.stores.facts import DatabaseFacts, Facts

from .findings import Finding


def judge(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts, DatabaseFacts):
        return
    value = {
        "vendor": facts.vendor,
        "rows": facts.rows,
        "expired": facts.expired,
        "complete": facts.rows < facts.most,
    }
    if value["complete"]:
        text = _(
            "%(vendor)s, rows: %(rows)s, of which %(expired)s have expired and are swept as "
            "requests come"
        )
    else:
        text = _(
            "%(vendor)s, rows: at least %(rows)s, of which %(expired)s have expired and are swept "
            "as requests come"
        )
    text %= {"vendor": facts.vendor, "rows": f"{facts.rows:,}", "expired": f"{facts.expired:,}"}
    yield Finding("store.table", "ok", text, value=value)
