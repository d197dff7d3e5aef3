"""Limits of other people's APIs that can't be meant as they are."""

from __future__ import annotations

from collections.abc import Iterator

from ratelimits import rows
from ratelimits.client.rows import terms_of
from ratelimits.client.traps import mistakes
from ratelimits.doctor.findings import Finding

from .naming import _, found, ngettext


def look() -> Iterator[Finding]:
    upstreams = rows.model("Upstream").objects.using(rows.write_alias())
    wrong = [
        f"{row.slug}: {' '.join(told)}"
        for row in upstreams.order_by("slug").prefetch_related("limits")
        if (told := list(mistakes(terms_of(row))))
    ]
    yield found(
        "upstreams.mistakes",
        wrong,
        _("every upstream has limits that hold calls back"),
        ngettext(
            "%d upstream has limits that can't be meant so",
            "%d upstreams have limits that can't be meant so",
            len(wrong),
        ),
        _("Correct them in the admin."),
    )
