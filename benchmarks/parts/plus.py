"""drf-ratelimit-plus, which needs an older Django: in an environment made for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.ours import CACHE_GET
from benchmarks.table import WHOLE, LeftOut, Row, microseconds
from benchmarks.timing import Spread
from tests.processes import ROOT

PACKAGES = ("drf-ratelimit-plus==1.0.0", "django-redis", "hiredis")
# Seconds for pip, and for the checks beyond what they are given.
PATIENCE = 300


def rows(bench: Bench) -> Iterator[Row]:
    if bench.quick:
        raise LeftOut(WHOLE)
    python = _environment(bench.directory / "plus")
    arguments = [bench.server.url[:-1] + "3", str(bench.server.pid), str(bench.seconds)]
    command = [str(python), "-m", "benchmarks.plus_check", *arguments]
    done = _run(command, PATIENCE + bench.seconds)
    found = json.loads(done)
    for name, ratio in found["ratios"].items():
        what = f"drf-ratelimit-plus DRF throttle, {name}"
        note = f"in an environment of its own, with Django {found['django']}; no plans"
        yield Row(what, microseconds(found["medians"][name]), Spread(**ratio), CACHE_GET, note=note)


def _environment(directory: Path) -> Path:
    """A Python that has it. Raises LeftOut if it can't be installed."""
    python = directory / "bin" / "python"
    _run([sys.executable, "-m", "venv", str(directory)], PATIENCE)
    _run([str(python), "-m", "pip", "install", "-q", *PACKAGES], PATIENCE)
    return python


def _run(command: list[str], seconds: float) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LeftOut(f"{command[:4]} did not work: {error}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["?"]
        raise LeftOut(f"{' '.join(command[1:5])} ended with {done.returncode}: {lines[-1]}")
    return done.stdout
