"""Tries a plan on the calls of access logs."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error
from django.utils.translation import gettext

from ratelimits.checks.base import meant
from ratelimits.plan_files.reading import BadFile, read
from ratelimits.replay import formats, plans, report, sources
from ratelimits.replay.calls import Log, Reading
from ratelimits.replay.chart import svg
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
        parser.add_argument(
            "logs", nargs="+", metavar="LOG", help="Files, also gzipped; - is the standard input."
        )
        parser.add_argument("--plan", required=True, help="The slug of the plan to try.")
        parser.add_argument(
            "--plans", metavar="FILE", help="Plans as ratelimits_apply takes them, to try first."
        )
        _add_fields(parser)
        _add_paths(parser)
        parser.add_argument("--json", action="store_true", help="Print it for programs.")
        parser.add_argument("--chart", metavar="FILE", help="Draw an SVG chart into this file.")
        parser.add_argument(
            "--top", type=int, default=20, metavar="N", help="Print so many tenants; 20."
        )

    def handle(self, *, logs: list[str], plan: str, top: int, **options: Any) -> None:
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
        try:
            sizes = sources.sizes(names)
        except OSError as error:
            raise CommandError(str(error), returncode=FAULT) from error
        known = [size for size in sizes if size is not None]
        total = sum(known) if len(known) == len(sizes) else None
        with Progress(self.stderr, gettext("reading"), total) as progress:
            for name, size in zip(names, sizes, strict=True):
                reading.add(name, sources.lines_of(name, progress.at))
                progress.pass_over(size or 0)
        reading.log.sort()
        return reading.log


def _add_fields(parser: CommandParser) -> None:
    parser.add_argument(
        "--tenant",
        default="remote_user",
        metavar="NAME",
        help="The field that is the tenant's key, as nginx's log_format or the JSON calls it; "
        "remote_user. With dots for what is inside of JSON.",
    )
    parser.add_argument(
        "--format",
        metavar="LOG_FORMAT",
        help="As in nginx's configuration, if it is neither of the formats combined and common. "
        "JSON is known by itself.",
    )
    parser.add_argument("--time", metavar="NAME", help="The field of the time.")
    parser.add_argument("--path", metavar="NAME", help="The field of the path or the request.")
    parser.add_argument("--cost-field", metavar="NAME", help="The field of each call's cost.")


def _add_paths(parser: CommandParser) -> None:
    parser.add_argument(
        "--scope",
        action="append",
        default=[],
        type=_pair,
        metavar="SCOPE=PREFIX",
        help="Which paths are of a scope; * is any part of one. Can be repeated.",
    )
    parser.add_argument(
        "--cost",
        action="append",
        default=[],
        type=_cost,
        metavar="SCOPE=UNITS",
        help="What a call of a scope takes, if that is not set in the admin or to be another; "
        "UNITS alone for calls without a scope. Can be repeated.",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PREFIX",
        help="Leave out all other paths, such as those of static files. Can be repeated.",
    )


def _pair(text: str) -> tuple[str, str]:
    scope, equals, prefix = text.partition("=")
    if not scope or not equals or not prefix:
        raise ArgumentTypeError(gettext('"%s" is not written as search=/api/search') % text)
    return scope, prefix


def _cost(text: str) -> tuple[str, int]:
    scope, _, units = text.rpartition("=")
    if not units.isdecimal():
        raise ArgumentTypeError(gettext('"%s" is not written as search=5') % text)
    return scope, int(units)


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
    except (Error, OSError, UnicodeDecodeError) as error:
        raise CommandError(str(error), returncode=FAULT) from error


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
    return "\n".join(filter(None, [told % numbers, lack]))
