"""One look at everything that counting depends on, for whoever is on call."""

from __future__ import annotations

from ratelimits.doctor.findings import Finding
from ratelimits.doctor.report import examine
from ratelimits.management.findings import FindingsCommand


class Command(FindingsCommand):
    help = (
        "Look at the store, the plans and the settings of the limits, and say what to do. Ends "
        "with 2 if there is a problem, with --strict with 1 if there are warnings, else with 0."
    )

    def look(self) -> tuple[Finding, ...]:
        return examine()
