"""The table of the benchmarks can be produced. How long anything takes is not asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from benchmarks.table import HEADINGS, Row, exact, goal, markdown, timed
from benchmarks.timing import Spread, Subject, Times, race
from tests.processes import ROOT


def run(*arguments: str) -> Any:
    """The rows that a short run prints, by what they are of."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("DJANGO")}
    command = [sys.executable, "-m", "benchmarks", "--quick", "--json", "--seconds=0.05"]
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert "cores" in printed["machine"]
    return printed["rows"]


def test_a_run_prints_what_it_measured() -> None:
    rows = {(row["what"], row["against"]): row for row in run("--rows", "takes", "commands")}
    take = rows["take, 1 limit", "one django-redis cache.get()"]
    assert take["ratio"]["low"] <= take["ratio"]["median"] <= take["ratio"]["high"]
    assert take["goal"]["text"] == "at most 0.8 x"
    sent = rows["commands: take, 4 limits and a service limit", "one command"]
    assert sent["goal"] == {"text": "exactly 1 command", "reached": True}


def test_each_round_gives_one_time_of_each_subject() -> None:
    calls = {"a": 0, "b": 0}

    def count(name: str) -> None:
        calls[name] += 1

    times = race([Subject("a", lambda: count("a")), Subject("b", lambda: count("b"))], 0.01)
    assert len(times.by_name["a"]) == len(times.by_name["b"]) >= 5
    assert all(number > 0 for values in times.by_name.values() for number in values)
    assert min(calls.values()) > 200


def test_ratios_are_taken_round_by_round() -> None:
    times = Times({"base": [1, 2, 4], "with": [4, 6, 12], "without": [2, 2, 4]})
    assert times.ratio("with", "base") == Spread(3, 3, 4)
    assert times.ratio("with", "base", "without") == Spread(2, 2, 2)
    row = timed(times, "with", "base", ("at most", 2), less="without")
    assert row.measured == "4.00 us"
    assert row.goal is not None and row.goal.reached


def test_a_goal_that_is_missed_is_said_to_be() -> None:
    assert goal("at most", 0.8, 0.8).reached
    assert not goal("under", 10, 10, "us").reached
    assert not goal("at least", 20, 19.9).reached
    missed = Row("x", "3 us", exact(0.81), "y", goal("at most", 0.8, 0.81))
    head, rule, line = markdown([missed]).splitlines()
    assert [cell.strip() for cell in head.strip("|").split("|")] == HEADINGS
    assert len(head) == len(rule) == len(line)
    assert "| at most 0.8 x | NO " in line


def test_a_part_that_has_no_place_here_says_why() -> None:
    (row,) = run("--rows", "plus")
    assert row["what"] == "plus: left out"
    assert row["note"] == "only in a whole run"
