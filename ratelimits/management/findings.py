"""Commands that look at things and tell what they found, to people and to probes."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import ngettext

from ratelimits.doctor.findings import Finding
from ratelimits.doctor.report import as_json

PROBLEMS, WARNINGS = 2, 1


class FindingsCommand(BaseCommand):
    """Ends with 2 for a problem, with --strict with 1 for a warning, else with 0."""

    # It tells what they find, instead of ending with it.
    requires_system_checks = []

    def look(self) -> tuple[Finding, ...]:
        """What there is to tell."""
        raise NotImplementedError

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print it for programs.")
        parser.add_argument("--strict", action="store_true", help="End with 1 for warnings.")

    def handle(self, *, json: bool, strict: bool, **options: Any) -> None:
        findings = self.look()
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
    told = (
        ngettext("%d problem", "%d problems", problems) % problems,
        ngettext("%d warning", "%d warnings", warnings) % warnings,
    )
    if problems:
        raise CommandError(", ".join(told), returncode=PROBLEMS)
    if warnings and strict:
        raise CommandError(", ".join(told), returncode=WARNINGS)
