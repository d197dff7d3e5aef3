"""What a table of counts should be like."""

from __future__ import annotations

from collections.abc import Iterator

from ratelimits.stores.facts import DatabaseFacts, Facts

from .findings import Finding, number_of


def judge(facts: Facts) -> Iterator[Finding]:
    if not isinstance(facts, DatabaseFacts):
        return
    value = {
        "vendor": facts.vendor,
        "rows": facts.rows,
        "expired": facts.expired,
        "complete": facts.rows < facts.most,
    }
    least = "" if value["complete"] else "at least "
    text = (
        f"{facts.vendor}, {least}{number_of(facts.rows, 'row')}, of which {facts.expired:,} have "
        "expired and are swept as requests come"
    )
    yield Finding("store.table", "ok", text, value=value)
