"""Tries a plan on the calls of access logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error
from django.utils.translation import gettext

from ratelimits.checks.base import meant
from ratelimits.management.databases import fault_of
from ratelimits.plan_files.reading import BadFile, read
from ratelimits.replay import formats, plans, report, sources
from ratelimits.replay.calls import Log, Reading
from ratelimits.replay.chart import svg
from ratelimits.replay.options import add_arguments
from ratelimits.replay.paths import Paths
from ratelimits.replay.progress import Progress
from ratelimits.replay.times import clock
from ratelimits.replay.trying import try_plan

FAULT = 2


class Command(BaseCommand):
    help = (
        "Say what a plan would have refused of the calls in access logs, and which plan each "
        "tenant would need. Times are the log's own, every tenant is taken to be on the plan, "
        "and nothing is counted in the store. Ends with 0, or with 2 if there is nothing to try."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, **options: Any) -> None:
        try:
            self._try(**options)
        except Error as error:
            raise CommandError(fault_of(error), returncode=FAULT) from error
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(str(error), returncode=FAULT) from error

    def _try(self, *, logs: list[str], plan: str, top: int, **options: Any) -> None:
        sold = _sold(options["plans"])
        known = sold.plans
        if plan not in known:
            told = gettext('There is no plan "%(plan)s". There is %(known)s.')
            names = {"plan": plan, "known": ", ".join(known) or gettext("none")}
            raise CommandError(told % names, returncode=FAULT)
        log = self._read(logs, options, sold)
        if not log.tenants:
            raise CommandError(_nothing(log, options), returncode=FAULT)
        with Progress(self.stderr, gettext("counting"), log.count) as progress:
            tried = try_plan(log, known, plan, progress.at)
        found = report.Report(log, plan, known, tried)
        if options["chart"]:
            Path(options["chart"]).write_text(svg(found), encoding="utf-8")
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(found), indent=2))
        else:
            self.stdout.write("\n".join(report.lines(found, top)))

    def _read(self, names: list[str], options: dict[str, Any], sold: plans.Sold) -> Log:
        reading = _reading(options, sold)
        sizes = sources.sizes(names)
        known = [size for size in sizes if size is not None]
        total = sum(known) if len(known) == len(sizes) else None
        with Progress(self.stderr, gettext("reading"), total) as progress:
            for name, size in zip(names, sizes, strict=True):
                reading.add(name, sources.lines_of(name, progress.at))
                progress.pass_over(size or 0)
        reading.log.sort()
        return reading.log


def _names(options: dict[str, Any]) -> formats.Names:
    asked = (options["tenant"], options["time"], options["path"], options["cost_field"])
    return formats.Names(*[name and name.lstrip("$") for name in asked])


def _reading(options: dict[str, Any], sold: plans.Sold) -> Reading:
    names, log_format = _names(options), options["format"]
    if log_format and (fault := _lack(log_format, names)):
        raise CommandError(fault, returncode=FAULT)
    read_line = formats.reader(log_format or formats.usual(names), names)
    costs = {**sold.costs, **dict(options["cost"])}
    paths = Paths(options["scope"], options["only"], costs)
    return Reading(read_line, clock(), paths, by_cost=names.cost is not None)


def _lack(log_format: str, names: formats.Names) -> str:
    """What to say of a field that the format of the log does not have; "" if it has all."""
    lacking = formats.missing(log_format, names)
    if lacking is None:
        return ""
    known = formats.variables(log_format)
    told = gettext('The format of the log has no "%(name)s". It has %(known)s.')
    shown = meant(lacking, known) or ", ".join(known) or gettext("no fields")
    return told % {"name": lacking, "known": shown}


def _sold(file: str | None) -> plans.Sold:
    try:
        if file is None:
            return plans.of_database()
        return plans.of_file(read(Path(file).read_text(encoding="utf-8-sig")))
    except BadFile as error:
        told = "\n".join(f"{file}: {fault}" for fault in error.faults)
        raise CommandError(told, returncode=FAULT) from error


def _nothing(log: Log, options: dict[str, Any]) -> str:
    """Why there is nothing to try."""
    told = gettext(
        "There is no call to try: of the lines, %(unreadable)d can't be read, %(elsewhere)d are "
        "of other paths, and %(nobodys)d have no %(tenant)s."
    )
    numbers = {
        "unreadable": log.unreadable,
        "elsewhere": log.elsewhere,
        "nobodys": log.nobodys,
        "tenant": options["tenant"],
    }
    lack = _lack(options["format"] or formats.COMBINED, _names(options)) if log.unreadable else ""
    named = gettext(
        "Say with --tenant which field tells who called, such as remote_addr, whose callers "
        "are addresses."
    )
    return "\n".join(filter(None, [told % numbers, lack, named if log.nobodys else ""]))
