"""What the experiments have to find. If they stop to, a default may be wrong, or its reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from demo_project.experiments import EXPERIMENTS, Table
from demo_project.experiments.ours import Task, Team
from demo_project.experiments.patience import until_timely
from demo_project.experiments.tables import lines
from demo_project.management.commands.experiments import Command
from tests.demo import ROOT

Row = dict[str, Any]


def rows_of(name: str) -> list[list[Row]]:
    """The rows of each table of an experiment, run as its users run it."""
    env = {**os.environ}
    env.pop("DJANGO_SETTINGS_MODULE", None)
    finished = subprocess.run(
        [sys.executable, "manage.py", "experiments", name, "--json"],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    return [table["rows"] for table in json.loads(finished.stdout)[name]]


@pytest.mark.long
def test_units() -> None:
    ((seconds, date, epoch, milliseconds),) = rows_of("units")
    for row in (seconds, date, epoch, milliseconds):
        # A date and an epoch have whole seconds, and so does the clock that they are read by.
        assert 0 < row["right seconds"] <= 5
        assert row["answer then"] == 200
    assert seconds["naive seconds"] == seconds["right seconds"]
    assert date["naive seconds"] is None
    assert epoch["naive seconds"] > 50 * 365 * 86400
    assert milliseconds["naive seconds"] == pytest.approx(1000 * milliseconds["right seconds"])


def test_burst() -> None:
    edge, minute = rows_of("burst")
    fixed, sliding, bucket = (row["passed"] for row in edge)
    assert {row["sent"] for row in edge} == {20}
    assert (fixed, sliding) == (20, 10)
    assert 10 <= bucket <= 12
    assert {row["counted by"]: row["passed"] for row in minute} == {
        "fixed window": 10,
        "sliding log": 5,
        "sliding counter": 5,
        "token bucket": 5,
    }


@pytest.mark.long
def test_memory() -> None:
    ((bucket, log),) = rows_of("memory")
    assert bucket["callers"] == log["callers"] == 10_000
    assert 50 < bucket["bytes a caller"] < 200
    assert 20 < log["times a bucket"] < 100


@pytest.mark.long
def test_neighbour() -> None:
    (rows,) = rows_of("neighbour")
    shared, own = rows[:3], rows[3:]
    assert shared[0]["passed"] < 0.2 * shared[0]["sent"]
    for row in shared[1:]:
        # Everything, but for a call that came in the instant in which something flowed in.
        assert row["passed"] <= 0.3 * row["sent"]
    for row in own[1:]:
        assert row["passed"] == row["sent"]


@pytest.mark.long
def test_obey() -> None:
    (rows,) = rows_of("obey")
    blind, obedient, proactive, alone, together, too_high = rows
    # It sends as many as the machine allows, where the obedient one needs two or three more.
    assert blind["sent"] > 4 * obedient["sent"]
    assert 42 <= obedient["sent"] <= 44
    assert proactive["sent"] == 40
    # One or two may overtake others by more than the guard, on a busy machine.
    assert 40 <= alone["sent"] <= 42
    assert 40 <= together["sent"] <= 42
    assert 40 <= too_high["sent"] <= 50
    for row in rows:
        assert row["refused"] == row["sent"] - 40
        assert 2.9 < row["seconds"] < 12


def test_each_experiment_is_tested() -> None:
    for name in EXPERIMENTS:
        assert f"test_{name}" in globals()


def test_tables_are_printed_with_their_numbers_to_the_right() -> None:
    rows = [
        {"client": "blind", "sent": 3685, "share": 0.5, "secret": 1},
        {"client": "obedient", "sent": 43, "share": 12.25, "secret": 2},
    ]
    table = Table("Calls", rows, ["A note."], hidden=["secret"])
    assert list(lines(table)) == [
        "Calls",
        "  client     sent  share",
        "  --------  -----  -----",
        "  blind     3,685    0.5",
        "  obedient     43  12.25",
        "A note.",
    ]


def test_a_late_attempt_is_repeated() -> None:
    attempts = iter([None, None, 7])
    assert until_timely(lambda: next(attempts), "a test") == 7
    with pytest.raises(CommandError, match="too busy for a test: 3 attempts came too late"):
        until_timely(lambda: None, "a test", tries=3)


def test_a_worker_that_fails_is_told_of(tmp_path: Path) -> None:
    team = Team(tmp_path / "not-migrated.sqlite3", "")
    with pytest.raises(CommandError, match="A worker ended by itself, with 1"):
        team.run(1, Task("http://127.0.0.1:1", "10/s", 1))


def test_the_command_prints_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXPERIMENTS, "units", lambda: [Table("One wait", [{"way": "seconds"}])])
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    out = StringIO()
    call_command(Command(), "units", stdout=out, no_color=True)
    assert "One wait\n  way\n  -------\n  seconds\n" in out.getvalue()
