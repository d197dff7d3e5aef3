"""Runs the comparisons, and prints what they found."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from demo_project.experiments import EXPERIMENTS, Table
from demo_project.experiments.tables import lines


class Command(BaseCommand):
    help = "Compare algorithms and clients with real requests to a server of its own."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", default="all", choices=[*EXPERIMENTS, "all"])
        parser.add_argument("--json", action="store_true", help="Print the tables as JSON.")

    def handle(self, *, name: str, **options: Any) -> None:
        # As an exception, on which the servers of an experiment are ended.
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
        found: dict[str, list[Table]] = {}
        for chosen in EXPERIMENTS if name == "all" else [name]:
            started = time.monotonic()
            found[chosen] = EXPERIMENTS[chosen]()
            if not options["json"]:
                self._print(chosen, found[chosen], time.monotonic() - started)
        if options["json"]:
            tables = {name: [table._asdict() for table in found[name]] for name in found}
            self.stdout.write(json.dumps(tables, indent=2))

    def _print(self, name: str, tables: list[Table], seconds: float) -> None:
        self.stdout.write(self.style.MIGRATE_HEADING(f"{name} ({seconds:.0f} s)"))
        for table in tables:
            self.stdout.write("\n".join(["", *lines(table)]))
        self.stdout.write("")
        self.stdout.flush()
