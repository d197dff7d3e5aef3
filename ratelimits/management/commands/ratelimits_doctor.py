"""One look at everything that counting depends on, for whoever is on call."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ratelimits.doctor.findings import Finding, number_of
from ratelimits.doctor.report import as_json, examine

PROBLEMS, WARNINGS = 2, 1


class Command(BaseCommand):
    help = (
        "Look at the store, the plans and the settings of the limits, and say what to do. Ends "
        "with 2 if there is a problem, with --strict with 1 if there are warnings, else with 0."
    )
    # It tells what they find, instead of ending with it.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print it for programs.")
        parser.add_argument("--strict", action="store_true", help="End with 1 for warnings.")

    def handle(self, *, json: bool, strict: bool, **options: Any) -> None:
        findings = examine()
        if json:
            self.stdout.write(_dumped(findings))
        else:
            for finding in findings:
                self._say(finding)
        _end(findings, strict)

    def _say(self, finding: Finding) -> None:
        styles = {"ok": self.style.SUCCESS, "warning": self.style.WARNING}
        style = styles.get(finding.level, self.style.ERROR)
        self.stdout.write(f"{style(finding.level.ljust(7))}  {finding.name}: {finding.text}")
        for line in finding.advice.splitlines():
            self.stdout.write(f"         {line}")


def _dumped(findings: tuple[Finding, ...]) -> str:
    # Settings may be anything.
    return json.dumps(as_json(findings), indent=2, default=repr)


def _end(findings: tuple[Finding, ...], strict: bool) -> None:
    """Raises CommandError for what a probe should notice."""
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    text = f"{number_of(problems, 'problem')}, {number_of(warnings, 'warning')}"
    if problems:
        raise CommandError(text, returncode=PROBLEMS)
    if warnings and strict:
        raise CommandError(text, returncode=WARNINGS)
