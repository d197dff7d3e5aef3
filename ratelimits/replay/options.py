"""What the command can be told."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from django.utils.translation import gettext


def add_arguments(parser: ArgumentParser) -> None:
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


def _add_fields(parser: ArgumentParser) -> None:
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


def _add_paths(parser: ArgumentParser) -> None:
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
