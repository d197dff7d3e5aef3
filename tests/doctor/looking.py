"""What the doctor finds, by name."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

from django.core.management import CommandError, call_command

from ratelimits.doctor.findings import Finding
from ratelimits.doctor.report import examine


def look() -> dict[str, Finding]:
    """One look; of findings with one name, the gravest."""
    order = ("ok", "warning", "problem")
    findings = sorted(examine(), key=lambda finding: order.index(finding.level))
    return {finding.name: finding for finding in findings}


def printed(*args: str) -> tuple[str, int]:
    """What the command prints, and what it ends with."""
    out = StringIO()
    try:
        call_command("ratelimits_doctor", *args, stdout=out, no_color=True)
    except CommandError as error:
        return out.getvalue(), error.returncode
    return out.getvalue(), 0


def read(*args: str) -> tuple[dict[str, Any], int]:
    """The same as JSON."""
    text, code = printed("--json", *args)
    return json.loads(text), code
