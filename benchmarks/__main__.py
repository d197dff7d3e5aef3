"""`python -m benchmarks`: one table, in one run, on this machine."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from traceback import print_exc

from .bench import Bench, prepared
from .table import LeftOut, Row, as_data, markdown
from .timing import ALL_AHEAD, ahead

# In the order of the table. Each is a module of `parts`, whose rows() yields rows.
PARTS = (
    "takes",
    "logs",
    "refusals",
    "doors",
    "memory",
    "commands",
    "server",
    "space",
    "exact",
    "catalog",
    "growth",
    "workers",
    "awaited",
    "load",
    "hung",
    "plus",
)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--rows", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--seconds", type=float, help="for each comparison of times (default: 6)")
    parser.add_argument(
        "--quick", action="store_true", help="only show that everything works, in a few seconds"
    )
    parser.add_argument("--json", action="store_true", help="the rows as JSON instead of a table")
    return parser.parse_args(argv)


def measured(bench: Bench, part: str) -> Iterator[Row]:
    """The rows of a part, or one that says why there are none."""
    start = time.monotonic()
    try:
        yield from import_module(f"benchmarks.parts.{part}").rows(bench)
    except LeftOut as reason:
        yield Row(f"{part}: left out", note=str(reason))
    print(f"{part}: {time.monotonic() - start:.0f} s", file=sys.stderr)


def machine(bench: Bench) -> str:
    info = bench.server.client().info("server")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, load {load}; "
        f"Python {platform.python_version()}, {bench.server.name} {info['redis_version']}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    seconds = options.seconds or (0.2 if options.quick else 6)
    rows: list[Row] = []
    failed = False
    with ahead(ALL_AHEAD), prepared(seconds, options.quick) as bench:
        head = machine(bench)
        for part in options.rows:
            try:
                rows.extend(measured(bench, part))
            except Exception as error:
                print_exc()
                rows.append(Row(f"{part}: FAILED", note=f"{type(error).__name__}: {error}"))
                failed = True
            bench.server.recover()
    if options.json:
        print(json.dumps({"machine": head, "rows": [as_data(row) for row in rows]}, indent=1))
    else:
        print(f"{head}\n\n{markdown(rows)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
