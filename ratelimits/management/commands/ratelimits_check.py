"""One look at plans, tenants and service limits, for whoever sells and runs them."""

from __future__ import annotations

from ratelimits.audit.report import audit
from ratelimits.doctor.findings import Finding
from ratelimits.management.findings import FindingsCommand


class Command(FindingsCommand):
    help = (
        "Look for bad rows, limits of the service below what was sold, tenants above their plan, "
        "and keys that no resolver makes. Ends with 2 if something can't be looked at, with "
        "--strict with 1 if there are warnings, else with 0."
    )

    def look(self) -> tuple[Finding, ...]:
        return audit()
